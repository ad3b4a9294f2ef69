"""TensorRT without TensorRT: settings, trtexec's spellings, profiles, what a library has."""

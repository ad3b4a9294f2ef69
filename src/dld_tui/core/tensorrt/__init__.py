"""TensorRT without the library: settings, trtexec's options, profiles, facts of a library."""

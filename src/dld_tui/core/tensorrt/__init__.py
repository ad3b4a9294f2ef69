"""TensorRT without the library: settings, options of trtexec, profiles, what a library can do."""

/* Stand-in for NVRTC, which has printf built in; device code has no files. */

/* Stand-in for NVRTC, which has clock() and clock_t built in; device code has no other time. */

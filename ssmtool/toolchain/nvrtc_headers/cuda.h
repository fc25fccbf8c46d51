/* Stand-in for NVRTC: the driver's API is for host code, and device code needs nothing of this header. */

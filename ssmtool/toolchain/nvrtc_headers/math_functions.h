/* Stand-in for NVRTC, which has what device code needs of this header built in. */

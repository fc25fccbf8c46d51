/* Stand-in for NVRTC, which has this part of the toolkit built in. */

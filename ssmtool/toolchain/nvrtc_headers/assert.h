/* Stand-in for NVRTC, which has assert built in and, like <assert.h>, drops it under NDEBUG. */
#ifndef SSMTOOL_ASSERT_H
#define SSMTOOL_ASSERT_H
#ifdef NDEBUG
#undef assert
#define assert(condition) ((void)0)
#endif
#endif

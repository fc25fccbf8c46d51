/* Stand-in for NVRTC, which has size_t, ptrdiff_t and NULL built in. */
#ifndef SSMTOOL_STDDEF_H
#define SSMTOOL_STDDEF_H
#ifndef offsetof
#define offsetof(type, member) __INTADDR__(&(((type *)0)->member))
#endif
#endif

/* Stand-in for NVRTC, which has abs, malloc and free built in; device code has no other part of this header. */
#ifndef SSMTOOL_STDLIB_H
#define SSMTOOL_STDLIB_H
#include <stddef.h>
#endif

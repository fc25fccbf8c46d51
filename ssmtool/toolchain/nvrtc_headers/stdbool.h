/* Stand-in for NVRTC: bool, true and false are part of C++. */
#ifndef SSMTOOL_STDBOOL_H
#define SSMTOOL_STDBOOL_H
#define __bool_true_false_are_defined 1
#endif

#include "failure.h"

#include <stdarg.h>
#include <stdio.h>

int failure_set(struct failure *failure, const char *format, ...) {
  va_list arguments;

  va_start(arguments, format);
  vsnprintf(failure->text, sizeof failure->text, format, arguments);
  va_end(arguments);
  return -1;
}

/*
 * strtol(3) and sscanf(3) of C23, 2.38, for static libraries that were compiled with newer headers,
 * which rename the calls. Only numbers that begin with 0b are read otherwise.
 */
#include <stdarg.h>

/* Functions by their old names, which these headers would rename, too. */
long old_strtol(const char *, char **, int) __asm__("strtol");
unsigned long old_strtoul(const char *, char **, int) __asm__("strtoul");
long long old_strtoll(const char *, char **, int) __asm__("strtoll");
unsigned long long old_strtoull(const char *, char **, int) __asm__("strtoull");
int old_vsscanf(const char *, const char *, va_list) __asm__("vsscanf");
long __isoc23_strtol(const char *text, char **end, int base);
unsigned long __isoc23_strtoul(const char *text, char **end, int base);
long long __isoc23_strtoll(const char *text, char **end, int base);
unsigned long long __isoc23_strtoull(const char *text, char **end, int base);
int __isoc23_sscanf(const char *text, const char *format, ...);

long __isoc23_strtol(const char *text, char **end, int base) { return old_strtol(text, end, base); }
unsigned long __isoc23_strtoul(const char *text, char **end, int base) { return old_strtoul(text, end, base); }
long long __isoc23_strtoll(const char *text, char **end, int base) { return old_strtoll(text, end, base); }
unsigned long long __isoc23_strtoull(const char *text, char **end, int base) { return old_strtoull(text, end, base); }

int __isoc23_sscanf(const char *text, const char *format, ...) {
  va_list arguments;
  int read;

  va_start(arguments, format);
  read = old_vsscanf(text, format, arguments);
  va_end(arguments);
  return read;
}

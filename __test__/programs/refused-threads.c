/* Loaded before a program (LD_PRELOAD): while REFUSE_THREADS is in its environment, the system refuses it every further thread. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

typedef void *(*start_routine)(void *);
typedef int (*create)(pthread_t *, const pthread_attr_t *, start_routine, void *);

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, start_routine start, void *argument) {
  if (getenv("REFUSE_THREADS") != NULL) return EAGAIN;
  return ((create)dlsym(RTLD_NEXT, "pthread_create"))(thread, attributes, start, argument);
}

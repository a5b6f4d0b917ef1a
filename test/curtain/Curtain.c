// SPDX-License-Identifier: Apache-2.0
//
// Stands before the system's dlopen, access and stat and hides libraries and programs, as if they
// were not installed. HIDDEN has parts of their paths, separated by ':'; HIDDEN_NAMES how files
// begin that are hidden in the system's folders and where they are asked for without a folder.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/// Whether `list`, a text as HIDDEN, has a part that is in `path` (or, `atStart`, begins it).
static int isListed(const char *list, const char *path, int atStart) {
  while (list && *list) {
    size_t length = strcspn(list, ":");
    char part[256];
    if (length > 0 && length < sizeof part) {
      memcpy(part, list, length);
      part[length] = 0;
      const char *found = strstr(path, part);
      if (found && (!atStart || found == path))
        return 1;
    }
    list += length + (list[length] == ':');
  }
  return 0;
}

static int isHidden(const char *path) {
  if (!path)
    return 0;
  const char *slash = strrchr(path, '/');
  int system = !slash || isListed("/usr/:/lib:/opt/", path, 1);
  return isListed(getenv("HIDDEN"), path, 0) ||
         (system && isListed(getenv("HIDDEN_NAMES"), slash ? slash + 1 : path, 1));
}

void *dlopen(const char *name, int flags) {
  void *(*real)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
  return real(isHidden(name) ? "/hidden/by/the/test" : name, flags);
}

int access(const char *path, int mode) {
  int (*real)(const char *, int) = (int (*)(const char *, int))dlsym(RTLD_NEXT, "access");
  if (!isHidden(path))
    return real(path, mode);
  errno = ENOENT;
  return -1;
}

int stat(const char *path, struct stat *into) {
  int (*real)(const char *, struct stat *) =
      (int (*)(const char *, struct stat *))dlsym(RTLD_NEXT, "stat");
  if (!isHidden(path))
    return real(path, into);
  errno = ENOENT;
  return -1;
}

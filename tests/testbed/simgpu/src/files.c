/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Files, directories and device nodes that the driver leaves on a node.
 */
#define _GNU_SOURCE
#include "driver.h"

#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

void make_directories(const char *path)
{
    char part[128];
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(part, 0755);
        *slash = '/';
    }
    mkdir(part, 0755);
}

bool put_file(const char *path, const char *format, ...)
{
    va_list arguments;
    FILE *file = fopen(path, "we");
    if (!file) {
        fprintf(stderr, "simgpu: %s: %s\n", path, strerror(errno));
        return false;
    }
    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
    fclose(file);
    return true;
}

bool make_node(const char *path, unsigned major, unsigned minor, unsigned mode)
{
    unlink(path);
    if (mknod(path, S_IFCHR | mode, makedev(major, minor)) || chmod(path, mode)) {
        fprintf(stderr, "simgpu: %s: %s\n", path, strerror(errno));
        return false;
    }
    return true;
}

static int delete(const char *path, const struct stat *info, int flag, struct FTW *walk)
{
    (void)info, (void)flag, (void)walk;
    remove(path);
    return 0;
}

void remove_tree(const char *path)
{
    nftw(path, delete, 8, FTW_DEPTH | FTW_PHYS);
}

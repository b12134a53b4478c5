/* Copyright (c) 2026 KubeGPU contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Stands in for libcuda: a library that is there and knows its version.
 */
int cuInit(unsigned int flags)
{
    (void)flags;
    return 100; /* CUDA_ERROR_NO_DEVICE */
}

# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Boards as their drivers describe them, by hand from listings of `nvidia-smi mig -lgip` and the MIG User Guide."""

from __future__ import annotations

from ansible_collections.kubegpu.nvidia.plugins.module_utils._mig.model import Engines, Profile


def seven_slices(gigabytes, megabytes, engines):
    """Names and sizes in the order 1g, 1g of double memory, 2g, 3g, 4g, 7g; engines with those of 1g+me at the end."""
    small, double, two, three, four, seven = gigabytes
    of = dict(zip((small, double, two, three, four, seven), megabytes))
    one, one_double, two_slices, three_slices, four_slices, all_slices, media = (Engines(*counts) for counts in engines)
    anywhere = tuple(range(7))
    return (
        Profile(f"1g.{small}gb", 19, 1, of[small], 7, anywhere, 1, one),
        Profile(f"1g.{small}gb+me", 20, 1, of[small], 1, anywhere, 1, media),
        Profile(f"1g.{double}gb", 15, 1, of[double], 4, (0, 2, 4, 6), 2, one_double),
        Profile(f"2g.{two}gb", 14, 2, of[two], 3, (0, 2, 4), 2, two_slices),
        Profile(f"3g.{three}gb", 9, 3, of[three], 2, (0, 4), 4, three_slices),
        Profile(f"4g.{four}gb", 5, 4, of[four], 1, (0,), 4, four_slices),
        Profile(f"7g.{seven}gb", 0, 7, of[seven], 1, (0,), 8, all_slices),
    )


# Decoders, encoders, JPEG engines, optical flow engines.
AMPERE = ((0,), (1,), (1,), (2,), (2,), (5, 0, 1, 1), (1, 0, 1, 1))
HOPPER = ((1, 0, 1), (1, 0, 1), (2, 0, 2), (3, 0, 3), (4, 0, 4), (7, 0, 7, 1), (1, 0, 1, 1))

A100_40 = seven_slices((5, 10, 10, 20, 20, 40), (4864, 9856, 9856, 19968, 19968, 40192), AMPERE)
A100_80 = seven_slices((10, 20, 20, 40, 40, 80), (9856, 19968, 19968, 40192, 40192, 80384), AMPERE)
H100_80 = seven_slices((10, 20, 20, 40, 40, 80), (9984, 20096, 20096, 40448, 40448, 81152), HOPPER)
H200 = seven_slices((18, 35, 35, 71, 71, 141), (16384, 33280, 33280, 71168, 71168, 143360), HOPPER)
# No listing of it is public: memory that gives the names that its users report.
B200 = seven_slices((23, 45, 45, 90, 90, 180), (22528, 45312, 45312, 91136, 91136, 182784), HOPPER)

A30 = (
    Profile("1g.6gb", 14, 1, 5952, 4, (0, 1, 2, 3), 1, Engines(0)),
    Profile("1g.6gb+me", 21, 1, 5952, 1, (0, 1, 2, 3), 1, Engines(1, 0, 1, 1)),
    Profile("2g.12gb", 5, 2, 11968, 2, (0, 2), 2, Engines(2)),
    Profile("2g.12gb+me", 6, 2, 11968, 1, (0, 2), 2, Engines(2, 0, 1, 1)),
    Profile("4g.24gb", 0, 4, 24000, 1, (0,), 4, Engines(4, 0, 1, 1)),
)

RTX_PRO_6000 = (
    Profile("1g.24gb", 14, 1, 24192, 4, (0, 1, 2, 3), 1, Engines(1, 1, 1, 0)),
    Profile("1g.24gb+me", 21, 1, 24192, 1, (0, 1, 2, 3), 1, Engines(1, 1, 1, 1)),
    Profile("1g.24gb+gfx", 47, 1, 24192, 4, (0, 1, 2, 3), 1, Engines(1, 1, 1, 0)),
    Profile("1g.24gb+me.all", 65, 1, 24192, 1, (0, 1, 2, 3), 1, Engines(4, 4, 4, 1)),
    Profile("1g.24gb-me", 67, 1, 24192, 4, (0, 1, 2, 3), 1, Engines(0, 0, 0, 0)),
    Profile("2g.48gb", 5, 2, 48512, 2, (0, 2), 2, Engines(2, 2, 2, 0)),
    Profile("2g.48gb+gfx", 35, 2, 48512, 2, (0, 2), 2, Engines(2, 2, 2, 0)),
    Profile("2g.48gb+me.all", 64, 2, 48512, 1, (0, 2), 2, Engines(4, 4, 4, 1)),
    Profile("2g.48gb-me", 66, 2, 48512, 2, (0, 2), 2, Engines(0, 0, 0, 0)),
    Profile("4g.96gb", 0, 4, 97280, 1, (0,), 4, Engines(4, 4, 4, 1)),
    Profile("4g.96gb+gfx", 32, 4, 97280, 1, (0,), 4, Engines(4, 4, 4, 1)),
)

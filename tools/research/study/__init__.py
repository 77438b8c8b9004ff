# Copyright (c) mmclca contributors. Licensed under Apache-2.0.

# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Trust boundary for checkpoints and model folders of other people.

Nothing stored in a file is executed, imported, downloaded or opened by its
name. Files pass here once; code that gets their content may trust it:

- ``unpickling``: pickles hold tensors, logged values and plain settings;
- ``contents``: the format is known, and the size in memory is limited;
- ``plain_config``: the stored config is parsed as text;
- ``settings``: registered types and declared values, and nothing else;
- ``read_stored_config``: config and class names of a checkpoint, checked.
"""

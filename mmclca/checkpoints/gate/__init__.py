# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Trust boundary for checkpoints and model folders of other people.

Nothing stored in a file is executed, imported, downloaded or opened by its
name, and no link is followed. What these modules return can be trusted.

Checkpoints, read by :mod:`mmclca.checkpoints.opening`:

- ``unpickling``: pickles hold tensors, logged values and plain settings;
- ``contents``: the format is known, and the size in memory is limited;
- ``plain_config``: the stored config is parsed as text;
- ``settings``: registered types and declared values, and nothing else;
- ``stored_config``: reads config and class names, checked by the two above.

Model folders, read by :mod:`mmclca.checkpoints.model_folder`:

- ``folders``: files are read, written and removed without following links;
- ``json_parsing``: fit.json and threshold.json become typed records;
- ``photo_table``: rows of photographs.csv, and which photos may be opened.
"""

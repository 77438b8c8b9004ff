# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Trust boundary for checkpoint files of other people.

Nothing stored in a file is executed, imported, downloaded or opened by its
name. The modules check what :mod:`mmclca.checkpoints.opening` reads:

- ``unpickling``: pickles hold tensors, logged values and plain settings;
- ``contents``: the format is known, and the size in memory is limited;
- ``plain_config``: the stored config is parsed as text;
- ``settings``: registered types and declared values, and nothing else;
- ``stored_config``: reads config and class names, checked by the two above.

The other files of a model folder are checked where they are read:

- fit.json and photographs.csv in :mod:`mmclca.checkpoints.model_folder`, and
  the fields of fit.json in :mod:`mmclca.fitting.json_parsing`;
- threshold.json in :mod:`mmclca.evaluation.open_set`;
- links are refused in :mod:`mmclca.utils.folders`.
"""

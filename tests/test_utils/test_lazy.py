# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import sys

import pytest

from mmclca.utils.lazy import lazy


def test_lazy_module_imports_itself_and_submodules_at_first_use(
    tmp_path, monkeypatch
):
    (tmp_path / 'late').mkdir()
    (tmp_path / 'late/__init__.py').write_text('VALUE = 1')
    (tmp_path / 'late/part.py').write_text('VALUE = 2')
    (tmp_path / 'late/broken.py').write_text('import no_such_module')
    monkeypatch.syspath_prepend(tmp_path)
    late = lazy('late')
    assert 'late' not in sys.modules
    assert late.VALUE == 1 and 'late.part' not in sys.modules
    assert late.part.VALUE == 2
    assert not hasattr(late, 'no_such_name')
    with pytest.raises(ModuleNotFoundError, match='no_such_module'):
        late.broken.VALUE  # noqa: B018

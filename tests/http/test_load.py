"""Places that are few are refused at once when they are taken, and given back."""

from __future__ import annotations

import pytest

from deskwire.engine.errors import Unavailable
from deskwire.http.load import IMPORTS_MAX, Load


def test_only_so_many_imports_are_under_way_at_once() -> None:
    load = Load(requests_max=9, waits_max=9, bodies_bytes_max=9, writes_max=9, writes=())
    begun = [load.importing() for _ in range(IMPORTS_MAX)]
    for each in begun:
        each.__enter__()
    with pytest.raises(Unavailable) as refused, load.importing():
        pass
    assert (refused.value.reason, refused.value.retry_after_s) == ("overloaded", 1)
    assert (load.imports, load.refused["imports"]) == (IMPORTS_MAX, 1)
    begun[0].__exit__(None, None, None)
    with load.importing():
        assert load.imports == IMPORTS_MAX
    begun[1].__exit__(None, None, None)
    assert load.imports == 0

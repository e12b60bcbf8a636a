"""Distribution of test files over the processes of a run, of which the first alone imports torch.

Each process of pytest-xdist imports the test files that it may run, with some of them torch: seconds of work.
"""

from __future__ import annotations

from typing import Any, Final

from xdist.scheduler import LoadFileScheduling

TORCH_TESTS: Final = (
    "tests/evaluate/",
    "tests/pipelines/test_bit_flips.py",
    "tests/smoke/test_pages_in_browser.py",
    "tests/train/",
    "tests/vocab/test_adopt.py",
    "tests/vocab/test_real_vocabularies.py",
    "tests/vocab/tokenizer/test_hugging_face.py",
)
"""Beginnings of the names of the files with tests of torch and transformers: those of the first process."""


def is_first(node: Any) -> bool:
    """Return True for the process that runs the tests with torch."""
    return bool(node.gateway.id == "gw0")


class OneTorchProcess(LoadFileScheduling):  # type: ignore[misc]
    """Gives files to processes as ``--dist loadfile`` does, those with torch to the first, before others."""

    def schedule(self) -> None:
        """Begin with the first process, which has collected all tests."""
        for by_node in (self.assigned_work, self.registered_collections):
            for node in sorted(by_node, key=is_first, reverse=True):
                by_node[node] = by_node.pop(node)
        super().schedule()

    def _check_nodes_have_same_collection(self) -> bool:
        all_tests, *others = self.registered_collections.values()
        shared_tests = [test for test in all_tests if not test.startswith(TORCH_TESTS)]
        return all(tests == shared_tests for tests in others) or super()._check_nodes_have_same_collection()

    def _assign_work_unit(self, node: Any) -> None:
        files = [file for file in self.workqueue if file.startswith(TORCH_TESTS) == is_first(node)]
        if not files and not is_first(node):
            node.shutdown()
            return
        if files:
            self.workqueue.move_to_end(files[0], last=False)
        super()._assign_work_unit(node)

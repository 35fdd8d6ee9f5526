"""Checkpoints: the newest whole one is taken up, under a key of everything that shapes a training's result."""

from __future__ import annotations

from userturn.posttrain import checkpoints


def test_the_newest_whole_checkpoint_is_taken_and_half_written_ones_are_removed(tmp_path):
    for step, state in ((2, '{"global_step": 2}'), (10, '{"global_step": 10}'), (12, '{"global')):
        (tmp_path / f"checkpoint-{step}").mkdir()
        (tmp_path / f"checkpoint-{step}" / "trainer_state.json").write_text(state)
    (tmp_path / "checkpoint-14").mkdir()
    assert checkpoints.newest(tmp_path) == tmp_path / "checkpoint-10"
    assert not (tmp_path / "checkpoint-12").exists()
    assert not (tmp_path / "checkpoint-14").exists()
    assert checkpoints.newest(tmp_path / "none") is None


def test_a_key_sees_everything_that_shapes_the_weights():
    parts = {"spec": {"seed": 1}, "threads": 2, "versions": {"torch": "2"}, "code": "c", "rows_sha256": "r"}
    other = [parts | change for change in ({"threads": 1}, {"code": "d"}, {"rows_sha256": "s"}, {"spec": {"seed": 2}})]
    assert len({checkpoints.key(**one) for one in (parts, *other)}) == 5

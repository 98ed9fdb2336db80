"""A run of so many hours: the plan follows the speed, and the learning rate ends at 0."""

import itertools

import pytest

from albert_keras.optimization.schedules import WarmupPolynomialDecay
from albert_keras.runs.log_file import read_log
from albert_keras.training.pretrain import pretrain
from albert_keras.training.run_callbacks import Progress
from albert_keras.training.stage_plan import StagePlan, stage_ends
from albert_keras.training.time_budget import FollowBudget


def steady(step):
    return 0.1


class Simulation:
    """Runs the callback as `fit` does, once for each stage, on a clock that the steps move."""

    def __init__(
        self,
        budget=150,
        seconds_of=steady,  # of a step, counted from 1
        num_steps=2000,
        warmup_steps=20,
        first_step=0,
        shares=(1.0,),
    ):
        self.now, self.seconds_of = 1000.0, seconds_of
        self.schedule = WarmupPolynomialDecay(1.0, num_steps, warmup_steps, adjustable=True)
        self.progress = Progress(first_step, num_steps)
        self.told = []  # after each execution, whether the follower took it for the last one
        self.plan = StagePlan(shares, stage_ends(num_steps, shares), shares)
        self.progress.plan = self.plan
        self.callback = FollowBudget(budget, self.schedule, self.progress, lambda: self.now)

    def run(self, stop_at=None, stride=1):
        """Returns the seconds at the end of each stage."""
        ends, begun = [], self.now
        self.callback.on_train_begin()
        while self.step < self.plan.ends[-1] and self.step != stop_at:
            self.progress.stage_is_over = False
            self.callback.begin_stage(positions_per_step=256)
            while not self.progress.stage_is_over and self.step != stop_at:
                self.progress.reach(self.step + stride)
                self.now += self.seconds_of(self.step) * stride
                self.num_steps = self.schedule.num_steps
                self.told.append(self.step == self.progress.last_step)
                self.callback.on_train_batch_end(self.step - self.progress.first_step - 1)
                assert self.step < 10_000, "the run does not end"
            ends.append(self.now - begun)
        return ends

    @property
    def step(self):
        return self.progress.step

    @property
    def last_rate(self):
        schedule = WarmupPolynomialDecay(1.0, self.num_steps, self.schedule.warmup_steps)
        return float(schedule(self.step - 1))


@pytest.mark.parametrize(
    "seconds_of",
    [
        lambda step: 3.0 if step == 1 else 0.05 if step < 300 else 0.2 if step < 600 else 0.1,
        lambda step: 5.0 if step % 400 == 0 else 0.1,  # with saves
        lambda step: 10.0 if step == 1 else 0.05 + 0.1 * ((step * 7919) % 101) / 101,
        lambda step: 0.05 * (1 + step / 500),  # ever slower
    ],
)
@pytest.mark.parametrize("num_steps", [50, 100_000])
def test_time_and_learning_rate_end_together_whatever_the_speed(seconds_of, num_steps):
    simulation = Simulation(150, seconds_of, num_steps)
    (seconds,) = simulation.run()
    assert 0.97 * 150 <= seconds <= 150
    assert 0 < simulation.last_rate < 0.01
    assert simulation.told[-1] and sum(simulation.told) == 1


@pytest.mark.parametrize("num_steps, stride", [(1, 1), (8, 8), (2000, 8)])
def test_neither_few_steps_nor_executions_of_several_end_the_run(num_steps, stride):
    simulation = Simulation(num_steps=num_steps, warmup_steps=0)
    (seconds,) = simulation.run(stride=stride)
    assert 0.97 * 150 <= seconds <= 150
    assert simulation.told[-1] and simulation.last_rate < 0.02


@pytest.mark.parametrize("first", [9, 12])
def test_a_slow_first_step_is_not_the_speed_of_a_short_run(first):
    simulation = Simulation(25, lambda step: first if step == 1 else 0.05, warmup_steps=2)
    assert 24 <= simulation.run()[0] <= 25
    slow = Simulation(100, lambda step: 30.0)
    assert slow.run()[0] == 90


def test_an_interrupted_run_goes_on_with_the_rest_of_its_budget():
    first = Simulation()
    (used,) = first.run(stop_at=700)
    state = first.callback.state()
    assert state == {
        "seconds_used": pytest.approx(used, abs=0.2),
        "num_steps": pytest.approx(1470, abs=4),
    }
    second = Simulation(first_step=700)
    second.callback.restore(state)
    assert second.progress.end > 700
    second.callback.on_train_begin()
    assert second.schedule.num_steps == pytest.approx(state["num_steps"], abs=4)
    assert 145 <= used + second.run()[0] <= 150
    assert second.last_rate < 0.01


def test_a_spent_budget_is_over():
    first = Simulation(50)
    first.run()
    again = Simulation(50, first_step=first.step)
    again.callback.restore(first.callback.state())
    assert again.progress.end == first.step


def test_a_budget_shorter_than_the_warmup_says_so(caplog):
    assert Simulation(10, warmup_steps=500).run()[0] <= 10
    assert caplog.text.count("within the warm-up of 500 steps") == 1


def staged(first_step=0):
    """Returns a simulation of three stages, each slower than the one before."""
    simulation = Simulation(first_step=first_step, shares=(0.5, 0.3, 0.2))
    plan = simulation.plan
    simulation.seconds_of = lambda step: (0.05, 0.1, 0.2)[plan.number_at(step - 1)]
    return simulation


def test_each_stage_ends_when_its_share_of_the_time_is_used_and_resumes_with_its_end():
    straight = staged()
    ends = straight.run()
    usable = straight.callback.usable
    assert ends == pytest.approx([0.5 * usable, 0.8 * usable, usable], abs=0.3)
    steps = [1470, 1470 + 441, 1470 + 441 + 147]
    assert straight.plan.ends == pytest.approx(steps, abs=4)
    assert straight.last_rate < 0.02
    assert straight.told[-1] and sum(straight.told) == 1

    first, again = staged(), staged(1600)
    first.run(stop_at=1600)  # in the second stage
    known = list(first.plan.ends)
    again.plan.ends = list(known)
    again.callback.restore(first.callback.state())
    assert again.plan.ends == known and again.plan.number_at(1600) == 1
    again.run()
    assert again.plan.ends[0] == known[0]
    assert again.plan.ends == pytest.approx(straight.plan.ends, abs=4)


@pytest.mark.slow
def test_a_budget_ends_a_resumed_run_and_its_schedule(tiny_records, tiny_training, tmp_path):
    config = tiny_training.with_flags(time_budget="20s", checkpoint_every=1000)
    clock = itertools.count(step=0.25).__next__
    first = pretrain(tiny_records, tmp_path / "run", config, max_steps=10, clock=clock)
    result = pretrain(tiny_records, tmp_path / "run", config, clock=clock)
    rates = [line["learning_rate"] for line in read_log(result.path)]
    assert first.step == result.resumed_from == 10 and result.step > 20
    assert rates[-1] < 0.02 * max(rates)
    assert pretrain(tiny_records, tmp_path / "run", config).step == result.step

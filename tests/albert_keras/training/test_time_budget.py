"""A run of so many hours: the plan follows the speed, and the learning rate ends at 0."""

import itertools
from types import SimpleNamespace

import pytest
import tensorflow as tf
from tensorflow import keras

from albert_keras.optimization.schedules import WarmupPolynomialDecay
from albert_keras.training.stage_plan import StagePlan, stage_ends
from albert_keras.training.time_budget import FollowBudget


@pytest.mark.parametrize("num_steps, stride", [(1, 1), (2, 1), (8, 8), (16, 8)])
def test_a_small_number_of_steps_does_not_end_the_run(num_steps, stride):
    durations = itertools.chain([3.0], itertools.repeat(0.1))
    simulation = Simulation(150, durations, num_steps=num_steps, warmup_steps=0)
    seconds = simulation.run(stride=stride)
    assert 0.97 * 150 <= seconds <= 150 and simulation.last_rate < 0.02


class Simulation:
    """Runs the callback as `fit` does, on a clock that the duration of each step moves."""

    def __init__(
        self,
        budget,
        durations,
        num_steps=2000,
        warmup_steps=20,
        first_step=0,
        plan=None,
    ):
        self.now = 1000.0
        self.durations = durations
        self.schedule = WarmupPolynomialDecay(1.0, num_steps, warmup_steps, adjustable=True)
        self.follower = SimpleNamespace(last_step=num_steps, ends=[])
        self.callback = FollowBudget(
            budget,
            self.schedule,
            [self.follower],
            first_step,
            clock=lambda: self.now,
            plan=plan,
        )
        self.callback.set_model(SimpleNamespace(stop_training=False))
        self.first_step = self.step = first_step

    def run(self, stop_at=None, stride=1):
        """Returns the seconds it took."""
        begun = self.now
        self.callback.on_train_begin()
        for duration in self.durations:
            self.now += duration * stride
            self.step += stride
            self.last_rate = float(self.schedule(self.step - 1)) if self.is_near_the_end else None
            self.follower.ends.append(self.step == self.follower.last_step)
            self.callback.on_train_batch_end(self.step - self.first_step - 1)
            if self.callback.model.stop_training or self.step == stop_at:
                return self.now - begun
            assert self.step < 10_000, "the run does not end"

    @property
    def is_near_the_end(self):
        return self.follower.last_step - self.step < 5


def slower_and_faster():
    yield 3.0  # builds the graph
    for step in itertools.count():
        yield 0.05 if step < 300 else 0.2 if step < 600 else 0.1


def with_saves():
    yield 3.0
    for step in itertools.count(2):
        yield 5.0 if step % 400 == 0 else 0.1


def jittering():
    yield 10.0
    for step in itertools.count():
        yield 0.05 + 0.1 * ((step * 7919) % 101) / 101


def ever_slower():
    yield 1.0
    for step in itertools.count():
        yield 0.05 * (1 + step / 500)


@pytest.mark.parametrize("speed", [slower_and_faster, with_saves, jittering, ever_slower])
@pytest.mark.parametrize("num_steps", [50, 2000, 100_000])
def test_time_and_learning_rate_end_together_whatever_the_speed(speed, num_steps):
    simulation = Simulation(150, speed(), num_steps=num_steps)
    seconds = simulation.run()
    assert 0.97 * 150 <= seconds <= 150
    assert 0 < simulation.last_rate < 0.01
    assert simulation.follower.ends[-1] and sum(simulation.follower.ends) == 1


def test_several_steps_per_execution_end_at_a_whole_one():
    simulation = Simulation(150, itertools.repeat(0.05), num_steps=2000)
    seconds = simulation.run(stride=8)
    assert simulation.step % 8 == 0 and simulation.follower.ends[-1]
    assert 0.97 * 150 <= seconds <= 150 and simulation.last_rate < 0.01


def test_an_interrupted_run_goes_on_with_the_rest_of_its_budget():
    first = Simulation(150, itertools.repeat(0.1))
    used = first.run(stop_at=700)
    state = first.callback.state()
    assert state == {
        "seconds_used": pytest.approx(used, abs=0.2),
        "num_steps": pytest.approx(1470, abs=4),
    }

    second = Simulation(150, itertools.repeat(0.1), first_step=700)
    second.callback.restore(state)
    assert not second.callback.is_over
    second.callback.on_train_begin()
    assert second.schedule.num_steps == pytest.approx(state["num_steps"], abs=4)
    assert 145 <= used + second.run() <= 150
    assert second.last_rate < 0.01


def test_a_spent_budget_is_over_until_it_is_enlarged():
    first = Simulation(50, itertools.repeat(0.1))
    first.run()
    state = first.callback.state()
    again = Simulation(50, itertools.repeat(0.1), first_step=first.step)
    again.callback.restore(state)
    assert again.callback.is_over

    larger = Simulation(100, itertools.repeat(0.1), first_step=first.step)
    larger.callback.restore(state)
    assert not larger.callback.is_over
    assert larger.run() == pytest.approx(49, abs=1)


def test_a_budget_shorter_than_the_warmup_says_so(caplog):
    simulation = Simulation(10, itertools.repeat(0.1), warmup_steps=500)
    assert simulation.run() <= 10
    assert caplog.text.count("within the warm-up of 500 steps") == 1


def test_fit_ends_when_the_time_is_over():
    clock = itertools.count(step=0.25)
    schedule = WarmupPolynomialDecay(0.1, num_steps=1000, adjustable=True)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(keras.optimizers.legacy.SGD(schedule), "mse")
    data = tf.data.Dataset.from_tensors((tf.ones((4, 2)), tf.ones((4, 1)))).repeat()
    follow = FollowBudget(50, schedule, clock=lambda: next(clock))
    model.fit(data, steps_per_epoch=10**9, callbacks=[follow], verbose=0)
    assert int(model.optimizer.iterations) == follow.step == follow.last_step < 200
    assert float(schedule(follow.step)) == 0


def staged(seconds_per_step, first_step=0, state=None, ends=None, **others):
    """Returns a simulation of three stages with the given seconds per step."""
    shares = (0.5, 0.3, 0.2)
    plan = StagePlan(shares, stage_ends(2000, shares), seconds_per_step)
    if ends is not None:
        plan.resume(first_step, ends, follow_clock=True)
    simulation = Simulation(150, None, first_step=first_step, plan=plan, **others)
    if state is not None:
        simulation.callback.restore(state)
    simulation.plan = plan

    def durations():
        while True:
            yield seconds_per_step[plan.number_at(simulation.step)]

    simulation.durations = durations()
    return simulation


def run_stages(simulation, stop_at=None, stride=1):
    """Runs as `fit` does, once for each stage; returns the seconds at the end of each."""
    ends, begin = [], simulation.now
    simulation.callback.on_train_begin()
    simulation.callback.on_train_begin = lambda: None
    while simulation.step < simulation.plan.ends[-1] and simulation.step != stop_at:
        simulation.callback.model.stop_training = False
        simulation.callback.begin_stage(positions_per_step=256, flops_per_step=1)
        simulation.run(stop_at, stride)
        ends.append(simulation.now - begin)
    return ends


@pytest.mark.parametrize("stride", [1, 4])
def test_each_stage_ends_when_its_share_of_the_time_is_used(stride):
    simulation = staged((0.05, 0.1, 0.2))
    ends = run_stages(simulation, stride=stride)
    usable = 150 - simulation.callback.margin
    assert ends == pytest.approx([0.5 * usable, 0.8 * usable, usable], abs=0.3 * stride)
    steps = [1470, 1470 + 441, 1470 + 441 + 147]
    assert simulation.plan.ends == pytest.approx(steps, abs=4 * stride)
    assert simulation.last_rate < 0.02
    assert simulation.follower.ends[-1] and sum(simulation.follower.ends) == 1


def test_a_resumed_run_keeps_the_ends_of_its_stages():
    straight = staged((0.05, 0.1, 0.2))
    run_stages(straight)
    first = staged((0.05, 0.1, 0.2))
    run_stages(first, stop_at=1600)  # in the second stage
    known = list(first.plan.ends)
    again = staged((0.05, 0.1, 0.2), 1600, first.callback.state(), known)
    assert again.plan.ends == known and again.plan.number_at(1600) == 1
    run_stages(again)
    assert again.plan.ends[0] == known[0]
    assert again.plan.ends == pytest.approx(straight.plan.ends, abs=4)

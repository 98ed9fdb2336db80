"""Pre-training in processes that are killed, one after the other."""

import json
import subprocess
import sys

#: Forking a process in which TensorFlow is imported, and has done nothing, spares the imports.
#: Each process is killed at a random moment after some steps: within a step, while it saves, or
#: while a graph is built.
_PROGRAM = """
import json, os, random, signal, struct, sys, time, traceback
from albert_keras.training.config import PretrainingConfig
from albert_keras.training import saving
from albert_keras.training.pretrain import pretrain

records, out, config, kills, least, most, longest_pause = sys.argv[1:]
config = PretrainingConfig.model_validate_json(config)


def run(report):
    on_batch_end = saving.SaveCheckpoints.on_train_batch_end

    def tell(self, batch, logs=None):
        on_batch_end(self, batch, logs)
        os.write(report, struct.pack("q", self.step))

    saving.SaveCheckpoints.on_train_batch_end = tell
    pretrain(records, out, config)


rng, made = random.Random(7), []
for _ in range(int(kills)):
    pipe, report = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            run(report)
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    os.close(report)
    number = rng.randint(int(least), int(most))
    steps = [struct.unpack("q", os.read(pipe, 8))[0] for _ in range(number)]
    time.sleep(rng.uniform(0, float(longest_pause)))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), status
    while told := os.read(pipe, 8):
        steps.append(struct.unpack("q", told)[0])
    os.close(pipe)
    made.append((steps[0], steps[-1]))
print(json.dumps(made))
"""


def pretrain_and_kill(records, out, config, kills, steps, longest_pause):
    """Pre-trains in processes that resume one another's run, and are killed.

    Args:
        kills: int. Number of processes.
        steps: pair of int. The fewest and the most steps that a process makes before a pause.
        longest_pause: float. Seconds, at most, until it is killed.

    Returns:
        list of pairs of int. The first and the last step that each process finished.
    """
    # Only what was set: settings that are not set depend on the model.
    settings = config.model_dump_json(exclude_unset=True)
    command = [sys.executable, "-c", _PROGRAM, records, out, settings]
    command += [str(kills), *map(str, steps), str(longest_pause)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return [(first, last) for first, last in json.loads(done.stdout)]

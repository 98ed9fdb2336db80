"""What is written about answers to labelled examples: the answers, the errors, a picture."""

from pathlib import Path

from albert_keras.finetuning.confusion_figure import draw_confusion, draw_scores
from albert_keras.finetuning.worst_errors import write_errors
from albert_keras.tasks.kinds import REGRESSION


def write_answers(folder, task, split, examples, answers):
    """Writes answers in the files of the task, wrong ones as a table, and a picture of them.

    Args:
        folder: str or Path. Is made if missing; older files of these names are replaced.
        task: Task.
        split: str.
        examples: list, labelled.
        answers: list, as `Task.answers` returns.

    Returns:
        dict of str to str or list of str. Paths by what they are: "answers", "errors", and
        "confusions" or "scores" where there is such a picture.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    value = task.scores(examples, answers)[task.metric]
    title = f"{task.config.name}, {split}: {task.metric} {value:.4g}"
    files = {
        "answers": [str(path) for path in task.write(folder, split, examples, answers)],
        "errors": str(write_errors(folder / "errors.tsv", task.errors(examples, answers))),
    }
    confusion = task.confusion(examples, answers)
    if confusion is not None:
        files["confusions"] = str(draw_confusion(folder / "confusion.png", *confusion, title))
    if task.kind is REGRESSION:
        truth = [example.label for example in examples]
        scores = [answer.score for answer in answers]
        files["scores"] = str(draw_scores(folder / "scores.png", truth, scores, title))
    return files

"""Small mistakes of a twin, which the comparison has to notice: each makes of a case and its module wrong ones."""
from dataclasses import replace


def weight(case, module):
    """One weight of the last matrix is off by a sixteenth of the matrix's root mean square."""
    matrix = [p.data for p in module.parameters() if p.dim() == 2][-1]
    matrix[0, 0] += 2**-4 * matrix.square().mean().sqrt()
    return case, module


def epsilon(case, module):
    """The first normalization adds a tenth too much to the variance."""
    norm = next(m for m in module.modules() if hasattr(m, "eps"))
    norm.eps *= 1.1
    return case, module


def learning_rate(case, module):
    """Both learning rates are off by a part in a thousand."""
    return replace(case, lr=tuple(lr * (1 + 2**-10) for lr in case.lr)), module


# The beginnings of the names of the results that each must reach, and of those that it must not.
MISTAKES = {weight: (("gradients", "10 steps"), ()), epsilon: (("gradients", "10 steps"), ()),
            learning_rate: (("10 steps",), ("gradients", "running"))}

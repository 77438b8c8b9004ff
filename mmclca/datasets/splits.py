# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
def check_fractions(val_fraction, test_fraction):
    """Check the shares of a class that are kept for validation and test.

    Args:
        val_fraction (float): Share for validation, above 0.
        test_fraction (float): Share for the test, 0 for none.

    Raises:
        ValueError: If a share is out of range, or nothing is left to train.
    """
    total = val_fraction + test_fraction
    if val_fraction <= 0 or test_fraction < 0 or total >= 1:
        raise ValueError(
            f'val fraction {val_fraction} and test fraction {test_fraction}: '
            'the first must be above 0, the second 0 or more, and their sum '
            'below 1'
        )


def split_sizes(count, val_fraction, test_fraction=0.0):
    """Share out the images of one class.

    Each part that is asked for gets at least one image while there are
    enough: training first, then validation, then test.

    Args:
        count (int): Images of the class.
        val_fraction (float): Share for validation.
        test_fraction (float): Share for the test. Defaults to 0.

    Returns:
        tuple[int, int, int]: Images for training, validation and test.
    """
    spare = max(count - 1, 0)
    for_test = min(spare - 1, 1) if test_fraction and spare else 0
    val = min(max(round(count * val_fraction), 1), spare - for_test)
    test = min(max(round(count * test_fraction), for_test), spare - val)
    return count - val - test, val, test

# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Call the modules of another library as modules, so that their hooks run."""

from collections.abc import Callable
from functools import cache
from inspect import Parameter, signature
from typing import NamedTuple

from torch import Tensor, nn

from mmclca.errors import Error

from ..reduction.attention import Attended
from ..reduction.rotary import Rotary

HOOKS = ('_forward_hooks', '_forward_pre_hooks')
HOOKS += ('_backward_hooks', '_backward_pre_hooks')


class Delegating:
    """Mixin over a class of modules: a call may replace the forward pass.

    ``module(x, run=function)`` runs the hooks of the module around
    ``function(module, x)``. Without ``run``, the module is the original.
    """

    original: type[nn.Module]  # the class without the mixin

    def forward(self, *args, run: Callable | None = None, **kwargs):
        """Return ``run(self, *args)``, or the output of the original."""
        if run is None:
            return super().forward(*args, **kwargs)
        return run(self, *args, **kwargs)

    def __reduce_ex__(self, protocol: int) -> tuple:
        # pickle cannot import a class that is made at run time
        return _new, (self.original,), self.__getstate__()


@cache
def _make_delegating(module_class: type) -> type:
    names = dict(original=module_class, __module__=module_class.__module__)
    return type(module_class.__name__, (Delegating, module_class), names)


def _new(module_class: type) -> nn.Module:
    delegating = _make_delegating(module_class)
    return delegating.__new__(delegating)


def delegate(module: nn.Module) -> None:
    """Make a module :class:`Delegating`, in place."""
    if not isinstance(module, Delegating):
        original: type = type(module)
        module.__class__ = _make_delegating(original)


def accepts_run(module: nn.Module) -> bool:
    """Return whether a wrapper of a module can pass ``run`` to it."""
    parameters = signature(module.forward).parameters
    return 'run' in parameters or any(
        parameter.kind is Parameter.VAR_KEYWORD
        for parameter in parameters.values()
    )


def call(module: nn.Module, x: Tensor, function: Callable, **inputs) -> tuple:
    """Call a module, or a wrapper around it, with its hooks.

    Args:
        module (nn.Module): A :class:`Delegating` module, or a wrapper that
            passes keyword arguments to it.
        x (Tensor): Its input.
        function (Callable): Maps the module, the input after hooks and
            ``inputs`` to the output before hooks and a second result.
        **inputs: Inputs that hooks may change.

    Returns:
        tuple: The output after hooks, and the second result.

    Raises:
        Error: If a wrapper or a hook replaces the module.
    """
    results = []

    def run(module, x, **inputs):
        output, result = function(module, x, **inputs)
        results.append(result)
        return output

    output = module(x, **inputs, run=run)
    if not results:
        raise Error(
            f'a hook or wrapper of {type(module).__name__} drops the keyword '
            "argument 'run'; pass on all of them, as token reduction needs "
            'queries and keys'
        )
    return output, results[-1]


class AttentionInputs(NamedTuple):
    """What an attention needs besides the tokens.

    Args:
        key_bias (Tensor, optional): See :class:`Attended`.
        rotary (Rotary, optional): See :class:`Tokens`.
        softmax (Callable, optional): See :meth:`TokenReducer.softmax`.
    """

    key_bias: Tensor | None = None
    rotary: Rotary | None = None
    softmax: Callable | None = None

    def attended(self, q: Tensor, k: Tensor, v: Tensor) -> Attended:
        """Rotate queries and keys (B, H, N, D), if they have positions."""
        if self.rotary is None:
            return Attended(q, k, v, self.key_bias)
        return self.rotary.attended(q, k, v, self.key_bias)


def call_attention(
    attn: nn.Module,
    x: Tensor,
    attend: Callable,
    inputs: AttentionInputs,
    names: dict[str, str],
) -> tuple[Tensor, Attended]:
    """Call an attention with its hooks.

    Args:
        attn (nn.Module): The attention, see :func:`call`.
        x (Tensor): Normalized tokens (B, N, C).
        attend (Callable): Maps attention, tokens and ``inputs`` to output and
            :class:`Attended`.
        inputs (AttentionInputs): Further inputs.
        names (dict[str, str]): Names of further inputs, by the argument of
            the attention that hooks may change.
    """

    def function(attn, x, **arguments):
        changed = {names[name]: value for name, value in arguments.items()}
        return attend(attn, x, inputs._replace(**changed))

    arguments = {key: getattr(inputs, name) for key, name in names.items()}
    return call(attn, x, function, **arguments)


def kept_hooks(model: nn.Module) -> dict[int, Callable]:
    """Return the hooks that copies of a model share, by id, for ``deepcopy``.

    A copy of a hook would store its results where nobody looks. A method of a
    module in the model belongs to the copied module, however.
    """
    modules = {*model.modules()}
    hooks = (
        hook
        for module in modules
        for name in HOOKS
        for hook in vars(module)[name].values()
    )
    return {
        id(hook): hook
        for hook in hooks
        if not (hasattr(hook, '__self__') and hook.__self__ in modules)
    }


def same_shape(old: Tensor, new: Tensor, layer: nn.Module) -> Tensor:
    """Return tokens that hooks may have changed; refuse another shape."""
    if new is old:
        return new
    is_tensor = isinstance(new, Tensor)
    if not is_tensor or new.shape != old.shape:
        changed = tuple(new.shape) if is_tensor else f'a {type(new).__name__}'
        raise Error(
            f'a hook or wrapper of {type(layer).__name__} changes the tokens '
            f'from {tuple(old.shape)} to {changed}; token reduction needs the '
            'same shape'
        )
    return new

# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmengine.model import BaseModule
from mmpretrain.models.utils import build_norm_layer
from torch import Tensor, nn

from mmclca.checkpoints.report import LoadReport
from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_integer

from .class_attention import ClassLayer
from .deit_init import TRUNC_NORMAL, trunc_normal

LAYER_NORM = dict(type='LN', eps=1e-6)


@MODELS.register_module()
class AttentionPool(BaseModule):
    """Pool a feature map with a learned query instead of the average.

    One layer of class attention with one softmax over all positions, whose
    weights show the importance of each position; then an FFN and a norm.
    ``Augmenting Convolutional networks with attention-based aggregation``,
    section 3; Touvron's thesis (2022), section 5.2.1. As a ``neck`` it works
    with any convolutional network in mmpretrain.

    With one query per class, each class has its own attention map, for a
    :class:`PerClassHead`. When weights with one query are loaded, each class
    starts with a copy.

    Args:
        in_channels (int): Channels C of the map.
        num_heads (int): Number of heads. Defaults to 1 as in the thesis, for
            one weight per position.
        multiclass (bool | int): Number of classes K for one query per class,
            which attends to the positions only; False for one query, which
            also attends to itself, as in the public code. Defaults to False.
        mlp_ratio (float): Hidden channels of the FFN, as a multiple of C.
            Defaults to 3.
        qkv_bias (bool): Whether queries, keys and values have a bias.
            Defaults to True.
        norm_cfg (dict): Config of the norms. Defaults to LayerNorm with eps
            1e-6.
        layer_scale_init_value (float): Initial value of LayerScale; 0: none.
            Defaults to 1e-4.
        init_cfg (dict, optional): Initialization config. Defaults to a
            truncated normal with standard deviation 0.02 for linear layers,
            the distribution of the initial queries.

    Raises:
        Error: If ``multiclass`` is not a number of classes, or the number
            of heads does not divide the channels.
    """

    def __init__(
        self,
        in_channels: int,
        num_heads: int = 1,
        multiclass: bool | int = False,
        mlp_ratio: float = 3.0,
        qkv_bias: bool = True,
        norm_cfg: dict = LAYER_NORM,
        layer_scale_init_value: float = 1e-4,
        init_cfg: dict | None = TRUNC_NORMAL,
    ):
        super().__init__(init_cfg)
        if multiclass is not False:
            check_integer(multiclass=multiclass)
        self.in_channels, self.multiclass = in_channels, multiclass
        queries = trunc_normal(1, int(multiclass) or 1, in_channels)
        self.cls_token = nn.Parameter(queries)
        self.layer = ClassLayer(
            in_channels,
            num_heads,
            int(mlp_ratio * in_channels),
            qkv_bias=qkv_bias,
            norm_cfg=norm_cfg,
            layer_scale_init_value=layer_scale_init_value,
            with_cls_key=not multiclass,
        )
        self.ln = build_norm_layer(norm_cfg, in_channels)
        self._register_load_state_dict_pre_hook(self._load_hook)

    def forward(self, maps: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Map each (B, C, H, W) to (B, C), or (B, K, C) for K classes."""
        return tuple(self._pool(feature_map) for feature_map in maps)

    def class_attention(self, maps: tuple[Tensor, ...]) -> list[Tensor]:
        """Compute the attention of each query to positions in the last map.

        Args:
            maps (tuple[Tensor]): Maps (B, C, H, W).

        Returns:
            list[Tensor]: One tensor (B, heads, 1, 1 + HW), starting with the
            query itself, or (B, heads, K, HW) with one query per class.
        """
        queries, positions = self._queries_and_positions(maps[-1])
        return [self.layer.weights(queries, positions)]

    def adapt_state_dict(
        self, weights: dict[str, Tensor], prefix: str, report: LoadReport
    ) -> None:
        """Copy the single query of weights to each class, in place.

        Args:
            weights (dict[str, Tensor]): Weights.
            prefix (str): Prefix of the parameter names of the pooling.
            report (LoadReport): Gets a description of the change.
        """
        name, K = f'{prefix}cls_token', self.cls_token.size(1)
        query = weights.get(name)
        if K == 1 or not isinstance(query, Tensor):
            return
        if query.shape[:2] != (1, 1):
            return
        weights[name] = query.repeat(1, K, 1)
        report.resized.append(
            f'{name} from one query to one for each of {K} classes'
        )

    def _load_hook(self, state_dict: dict, prefix: str, *_) -> None:
        self.adapt_state_dict(state_dict, prefix, LoadReport('the weights'))

    def _pool(self, x: Tensor) -> Tensor:
        queries, positions = self._queries_and_positions(x)
        x = self.ln(self.layer(queries, positions))
        return x if self.multiclass else x[:, 0]

    def _queries_and_positions(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries (B, K, C) and positions (B, HW, C)."""
        if x.dim() != 4 or x.size(1) != self.in_channels:
            raise Error(
                f'AttentionPool needs maps (B, {self.in_channels}, H, W), '
                f'found {tuple(x.shape)}; set in_channels to embed_dims'
            )
        return self.cls_token.expand(x.size(0), -1, -1), x.flatten(2).mT


class AveragePool(BaseModule):
    """Average over a map, followed by a norm.

    The baseline for :class:`AttentionPool` in the thesis, section 5.3.
    """

    def __init__(self, in_channels: int, norm_cfg: dict):
        super().__init__()
        self.ln = build_norm_layer(norm_cfg, in_channels)

    def forward(self, maps: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Map each (B, C, H, W) to one vector (B, C)."""
        return tuple(self.ln(x.mean(dim=(2, 3))) for x in maps)

    def class_attention(self, maps: tuple[Tensor, ...]) -> list[Tensor]:
        """Return an empty list: all positions have equal weights."""
        return []

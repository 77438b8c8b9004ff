# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from typing import Any, Literal

from mmcv.cnn.bricks.transformer import PatchEmbed
from mmengine.model import ModuleList
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from mmpretrain.models.utils import to_2tuple
from torch import Tensor

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_choice

from ..layers.deit_init import TRUNC_NORMAL, scale_of_depth
from ..layers.resmlp_layer import (
    TOKEN_MIXERS,
    ClassMLPLayer,
    PatchLinear,
    ResMLPLayer,
    build_affine,
)
from .base import ForeignWeights, settings_of

SIZES = ('embed_dims', 'num_layers')
# number of class layers per pooling
CLASS_LAYERS = dict(average=0, class_mlp=2)


@MODELS.register_module()
class ResMLP(ForeignWeights, BaseBackbone):
    """ResMLP: linear layers across patches alternate with FFNs.

    Without attention, norms and positions, the fixed number of patches
    communicates through a matrix shared by all channels. Checkpoints from the
    public release and timm are renamed on load. Linear layers are initialized
    with a truncated normal and zero biases.

    Source: Touvron's thesis (2022), chapter 4; `ResMLP: Feedforward networks
    for image classification with data-efficient training
    <https://arxiv.org/abs/2105.03404>`_.

    Args:
        arch (str | dict): 's12', 's24', 's36', 'b24', or a dict with
            ``embed_dims`` and ``num_layers``. Defaults to 's12'.
        img_size (int | tuple[int, int]): Image height and width in pixels;
            other image sizes are refused. Defaults to 224.
        patch_size (int | tuple[int, int]): Patch height and width in pixels.
            Defaults to 16.
        in_channels (int): Image channels. Defaults to 3.
        token_mixer (str): Layer across patches, see
            :data:`TOKEN_MIXERS`. Defaults to 'linear'.
        pooling (str): 'average' over patches, or 'class_mlp': a zero class
            token aggregates the patches in two more layers, see
            :class:`ClassMLPLayer`. Defaults to 'average'.
        norm_cfg (dict): Config of the layer before each branch and the
            pooling, :class:`Affine` or LayerNorm. Defaults to
            ``dict(type='mmclca.Affine')``.
        layer_scale_init_value (float, optional): Initial value of the factors
            after the branches. Defaults to None: 0.1 up to 18 layers, 1e-5 up
            to 24, 1e-6 beyond.
        with_post_beta (bool): Whether the branches end with shifts, too, as in
            the equations but not in the released weights. Defaults to False.
        drop_path_rate (float): Stochastic depth rate of every layer; 0 in the
            class layers. Defaults to 0.0.
        init_cfg (dict, optional): As in ``BaseModule``.

    Raises:
        Error: If ``arch`` is unknown or has other sizes, or if
            ``token_mixer``, ``pooling`` or ``norm_cfg`` is unknown.
    """

    arch_zoo = dict(
        s12=dict(embed_dims=384, num_layers=12),
        s24=dict(embed_dims=384, num_layers=24),
        s36=dict(embed_dims=384, num_layers=36),
        b24=dict(embed_dims=768, num_layers=24),
    )
    may_be_new = ('class_layers.',)
    layer_lists = ('layers', 'class_layers')
    shaped_by = 'arch, img_size, patch_size and token_mixer'
    why_not_reducible = 'its layers mix all patches of an image, by position'

    def __init__(
        self,
        arch: str | dict = 's12',
        img_size: int | tuple[int, int] = 224,
        patch_size: int | tuple[int, int] = 16,
        in_channels: int = 3,
        *,
        token_mixer: Literal[
            'linear', 'none', 'mlp', 'conv', 'depthwise', 'separable'
        ] = 'linear',
        pooling: Literal['average', 'class_mlp'] = 'average',
        norm_cfg: dict = dict(type='mmclca.Affine'),
        layer_scale_init_value: float | None = None,
        with_post_beta: bool = False,
        drop_path_rate: float = 0.0,
        init_cfg: dict | None = TRUNC_NORMAL,
    ):
        super().__init__(init_cfg)
        sizes = settings_of(arch, self.arch_zoo, SIZES)
        check_choice(CLASS_LAYERS, pooling=pooling)
        check_choice(TOKEN_MIXERS, token_mixer=token_mixer)
        depth, dims = sizes['num_layers'], sizes['embed_dims']
        if layer_scale_init_value is None:
            layer_scale_init_value = scale_of_depth(depth)
        self.embed_dims, self.img_size = dims, to_2tuple(img_size)
        self.patch_embed = PatchEmbed(
            in_channels,
            dims,
            kernel_size=patch_size,
            stride=patch_size,
            input_size=self.img_size,
        )
        self.patch_resolution = height, width = self.patch_embed.init_out_size
        inner: dict[str, Any] = dict(
            norm_cfg=norm_cfg,
            layer_scale_init_value=layer_scale_init_value,
            with_post_beta=with_post_beta,
        )
        mixer: Any = TOKEN_MIXERS[token_mixer]
        self.layers = ModuleList(
            ResMLPLayer(
                dims,
                mixer(dims, (height, width)),
                drop_path_rate=drop_path_rate,
                **inner,
            )
            for _ in range(depth)
        )
        self.class_layers = ModuleList(
            ClassMLPLayer(dims, PatchLinear(height * width + 1, 1), **inner)
            for _ in range(CLASS_LAYERS[pooling])
        )
        self.norm = build_affine(norm_cfg, dims)
        self.rename_on_load()

    def forward(self, x: Tensor) -> tuple[Tensor]:
        """Map images (B, 3, H, W) to a tuple with one vector each, (B, C).

        Raises:
            Error: If the images do not have ``img_size``.
        """
        if tuple(x.shape[-2:]) != self.img_size:
            raise Error(
                f'ResMLP needs images of {self.img_size} px, found '
                f'{tuple(x.shape[-2:])} px; resize the images'
            )
        x, _ = self.patch_embed(x)
        x = x.contiguous()  # otherwise every FFN would copy it
        for layer in self.layers:
            x = layer(x)
        if not self.class_layers:
            return (self.norm(x).mean(dim=1),)
        cls = x.new_zeros(x.size(0), 1, self.embed_dims)
        for layer in self.class_layers:
            cls = layer(cls, x)
        return (self.norm(cls)[:, 0],)

    def matrices(self) -> dict[str, list[Tensor]]:
        """Return the weight matrices of every layer, in order.

        Returns:
            dict[str, list[Tensor]]: Named as in the thesis: A (N, N) across
            patches with one row per output patch, B (4C, C) and C (C, 4C) of
            the FFN.

        Raises:
            Error: If the model lacks linear layers across patches.
        """
        if not isinstance(self.layers[0].mix, PatchLinear):
            raise Error(
                'this ResMLP has no linear layers across patches; build it '
                "with token_mixer='linear', and do not fuse it"
            )
        return dict(
            A=[layer.mix.weight for layer in self.layers],
            B=[layer.ffn.layers[0][0].weight for layer in self.layers],
            C=[layer.ffn.layers[1].weight for layer in self.layers],
        )

    def fuse(self) -> 'ResMLP':
        """Fold affine maps into linear layers for inference, in place.

        See :meth:`ResMLPLayer.fused`. Outputs are equal up to rounding; only
        ``layers`` and ``class_layers`` are replaced.
        """
        self.layers = ModuleList(layer.fused() for layer in self.layers)
        self.class_layers = ModuleList(
            layer.fused() for layer in self.class_layers
        )
        return self

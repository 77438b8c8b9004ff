# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmclca.checkpoints.loading import load_into_backbone, load_into_classifier


class ForeignWeights:
    """Mixin over mmpretrain's ``BaseBackbone``: it loads releases by name.

    Weights of timm and of other releases are renamed when they are loaded,
    into the backbone or into its classifier, and weights from a file that
    are not of this backbone are refused. A backbone has ``embed_dims`` and
    ``layers``, ``patch_resolution`` (its grid) where it has positions, and
    calls :meth:`rename_on_load` in its ``__init__``.
    """

    # parameters that weights of others need not have; all else decides what
    # the model computes
    may_be_new = ()
    may_be_left = ()  # what of their weights has no place here on purpose
    # tokens whose rows of positions, if they have any, come before the patches
    may_have_position = ('cls_token', 'dist_token')
    # for messages: its settings, and why its tokens cannot be reduced
    shaped_by = 'arch, img_size and patch_size'
    irreducible = ''

    def rename_on_load(self) -> None:
        """Take weights by the names of releases from now on."""
        self._register_load_state_dict_pre_hook(self._load_hook)

    def fit_weights(self, state_dict: dict, prefix: str) -> list[str]:
        """Bring weights into the form of the backbone, in place.

        Args:
            state_dict (dict): Weights by the names of the backbone.
            prefix (str): What these begin with.

        Returns:
            list[str]: What was changed, in words. Here there is nothing.
        """
        return []

    def train(self, mode: bool = True) -> 'ForeignWeights':
        """Set the mode; unlike mmpretrain's backbones, return self."""
        super().train(mode)
        return self

    def _load_hook(self, state_dict, prefix, metadata, *_):
        load_into_backbone(self, state_dict, prefix, metadata)

    def _checkpoint_filter(self, state_dict, prefix, metadata, *_):
        """Load hook that mmpretrain's classifiers put on themselves."""
        load_into_classifier(state_dict, prefix, metadata)

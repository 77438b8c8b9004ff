# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Train an image classifier with another library, as its docs recommend.

``alternatives.py`` runs this file in the environment of the library, which
needs no mmclca. It prints the accuracy as JSON.
"""

import json
import sys
from itertools import count
from pathlib import Path

NAME = 'vit_tiny_patch16_224.augreg_in21k_ft_in1k'
EPOCHS = 20  # of fastai, whose quick start has one epoch for many photos


def list_photos(folder):
    """Return photos and class names in a folder with a folder per class."""
    photos = sorted(Path(folder).glob('*/*'))
    return [str(x) for x in photos], [x.parent.name for x in photos]


def use_local_weights(file):
    """Let timm read the weights of ``NAME`` from a file."""
    from timm.models import _registry

    settings = _registry._model_pretrained_cfgs[NAME]
    settings.file = file
    settings.custom_load = False  # the original file is in a format of NumPy


def train_scikit_learn(train, test, out):
    """Fit logistic regression to features of timm, see its quick start."""
    import joblib
    import timm
    import torch
    from PIL import Image
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = timm.create_model(NAME, pretrained=True, num_classes=0).eval()
    settings = timm.data.resolve_model_data_config(model)
    transform = timm.data.create_transform(**settings, is_training=False)

    def extract(paths):
        with torch.inference_mode():
            photos = [transform(Image.open(x).convert('RGB')) for x in paths]
            parts = torch.stack(photos).split(32)
            return torch.cat([model(x) for x in parts]).numpy()

    photos, labels = list_photos(train)
    classifier = make_pipeline(StandardScaler(), LogisticRegression())
    classifier.fit(extract(photos), labels)
    torch.save(model.state_dict(), out / 'backbone.pth')
    joblib.dump(classifier, out / 'classifier.joblib')
    return classifier.predict(extract(list_photos(test)[0])).tolist()


def train_fastai(train, test, out):
    """Fine-tune with fastai, see its vision quick start.

    Its random validation part may have all photos of a class, which ends with
    an error: the first seed is used that leaves a photo per class.
    """
    from fastai.vision.all import (
        ImageDataLoaders,
        Resize,
        error_rate,
        vision_learner,
    )

    photos, labels = list_photos(train)
    splits = (
        ImageDataLoaders.from_folder(
            train,
            valid_pct=0.2,
            seed=seed,
            item_tfms=Resize(224),
            bs=min(64, len(photos) // 2),
            num_workers=0,
        )
        for seed in count()
    )
    loaders = next(x for x in splits if len(x.vocab) == len({*labels}))
    learner = vision_learner(loaders, NAME, metrics=error_rate)
    learner.fine_tune(EPOCHS)
    learner.export(out.resolve() / 'model.pkl')
    tested = learner.dls.test_dl(list_photos(test)[0])
    scores, _ = learner.get_preds(dl=tested)
    return [learner.dls.vocab[x] for x in scores.argmax(1).tolist()]


def train_autogluon(train, test, out, problem_type=None):
    """Train with AutoGluon MultiModal, see its image quick start.

    By default it is fine-tuned, without a time limit.
    """
    import pandas as pd
    from autogluon.multimodal import MultiModalPredictor

    photos, labels = list_photos(train)
    predictor = MultiModalPredictor(
        label='label', path=str(out / 'model'), problem_type=problem_type
    )
    predictor.fit(
        pd.DataFrame(dict(image=photos, label=labels)),
        seed=0,
        hyperparameters={
            'model.names': ['timm_image'],
            'model.timm_image.checkpoint_name': NAME,
            'env.num_gpus': 0,
            'env.num_workers': 0,
            'env.num_workers_inference': 0,
        },
    )
    new = pd.DataFrame(dict(image=list_photos(test)[0]))
    return predictor.predict(new).tolist()


def train_autogluon_few_shot(train, test, out):
    """Train with AutoGluon MultiModal, see its tutorial on few photos."""
    return train_autogluon(train, test, out, 'few_shot_classification')


LIBRARIES = {
    'autogluon': train_autogluon,
    'autogluon-few-shot': train_autogluon_few_shot,
    'fastai': train_fastai,
    'scikit-learn': train_scikit_learn,
}


def main():
    library, train, test, out, weights = sys.argv[1:]
    use_local_weights(weights)
    Path(out).mkdir(parents=True)
    predicted = LIBRARIES[library](train, test, Path(out))
    pairs = zip(predicted, list_photos(test)[1], strict=True)
    right = [x == label for x, label in pairs]
    print(json.dumps(dict(accuracy=100 * sum(right) / len(right))))


if __name__ == '__main__':
    main()

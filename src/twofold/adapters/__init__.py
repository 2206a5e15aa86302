"""`Watch` and `How` in the loops of other packages, one file per package.

Each needs its package: `pip install 'twofold[lightning]'`, `[huggingface]` or `[avalanche]`.
"""

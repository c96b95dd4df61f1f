#!/usr/bin/env bash
python -m acme_rl.train \
    --algorithm grpo \
    --kl-placement loss \
    --kl-estimator k3 \
    --kl-weight 0.02

#!/bin/bash
torchrun --nproc_per_node 8 pretrain_gpt.py \
  --num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 \
  --micro-batch-size 2 --global-batch-size 32 --bf16 \
  --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2 \
  --use-distributed-optimizer --overlap-grad-reduce --clip-grad 1.0

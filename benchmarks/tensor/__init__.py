"""Figures of docs/theory.md and docs/claims.md, computed: python -m benchmarks.tensor > benchmarks/results/tensor-cpu.md"""

"""A language model of two layers with a tokenizer trained on the spot: nothing is downloaded."""

from __future__ import annotations

from typing import Any

__all__ = ["prompts", "tiny_model", "tiny_tokenizer"]

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "saw", "two", "dogs", "run", "past", "one", "red", "barn"]


def tiny_tokenizer() -> Any:
    """A word-level tokenizer of some twenty words."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["<pad>", "<eos>", "<unk>"]
    tokenizer.train_from_iterator([" ".join(WORDS)], trainers.WordLevelTrainer(special_tokens=special))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
    )


def tiny_model(vocabulary: int, seed: int = 0) -> Any:
    """A Llama of two layers and 32 dimensions."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=128,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=1,
    )
    return LlamaForCausalLM(config)


def prompts(count: int) -> list[str]:
    """Different prompts of a few words."""
    return [" ".join(WORDS[i % len(WORDS) : i % len(WORDS) + 3]) for i in range(count)]

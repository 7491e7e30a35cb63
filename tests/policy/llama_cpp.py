"""Write smollm2_greedy.json: what llama.cpp answers greedily with the weights of the policy `smollm2`.

An independent reader of the same file. llama.cpp rounds activations where weights are quantised, so the file is
dequantised first, with the gguf package. In a venv of its own: pip install xllamacpp gguf; then

    python tests/policy/llama_cpp.py SmolLM2-135M-Instruct.Q4_1.gguf
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import xllamacpp
from gguf import GGUFReader, GGUFValueType, GGUFWriter
from gguf.quants import dequantize

TOKENS = 24
# llama.cpp reads names of special tokens as tokens, so no prompt has one; nor one where two tokens tie within 0.001
PROMPTS = [
    "What is the capital of France?",
    "Name three primary colours.",
    "Translate 'good morning' into Spanish.",
    "Write one sentence about the sea.",
    "How many days are in a week?",
    "What is 7 times 8?",
    "List two animals that can fly.",
    "Count from one to five.",
    "Is water wet? Answer yes or no.",
    "What do bees make?",
    "Give a synonym of 'fast'.",
    "Who wrote Romeo and Juliet?",
    "What comes after Tuesday?",
    "Complete the proverb: a bird in the hand",
    "What is the opposite of hot?",
    "I think of a whole number from 1 to 100. Answer with one number; I say higher, lower or correct.",
    "You are in a kitchen. You see a closed fridge. Answer with one command, such as: open fridge",
    "Größe, naïve, 東京 and 🙂 are words from where?",
    "  Leading spaces,\ttabs\nand 'quotes' as text.",
    "Write a Python function that adds two numbers.",
]


def dequantised(source: str, target: str) -> None:
    """Copy a GGUF file with all tensors in float32."""
    reader, writer = GGUFReader(source), GGUFWriter(target, "llama")
    own = ("general.architecture", "general.file_type", "general.quantization_version")
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in own:
            continue
        kind, *inner = field.types
        writer.add_key_value(
            field.name, field.contents(), kind, sub_type=inner[-1] if kind == GGUFValueType.ARRAY else None
        )
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, dequantize(tensor.data, tensor.tensor_type).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    """Ask llama.cpp."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/float32.gguf"
        dequantised(sys.argv[1], path)
        params = xllamacpp.CommonParams()
        params.model.path = path
        params.n_ctx, params.n_parallel, params.warmup = 2048, 1, False
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        server = xllamacpp.Server(params)
        answers = {}
        for prompt in PROMPTS:
            messages = [{"role": "user", "content": prompt}]
            reply = server.handle_chat_completions({"max_tokens": TOKENS, "temperature": 0, "messages": messages})
            answers[prompt] = reply["choices"][0]["message"]["content"]
    text = json.dumps({"tokens": TOKENS, "answers": answers}, indent=1, ensure_ascii=False)
    Path(__file__).with_name("smollm2_greedy.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

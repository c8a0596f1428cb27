"""The llama.cpp arm: the same file, the same conversation, measured by llama.cpp itself."""

import json
import sys
import time

import xllamacpp

path, threads, prompt, tokens = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
params = xllamacpp.CommonParams()
params.model.path = path
params.n_ctx = 4096
params.n_parallel = 1
params.warmup = False
params.cpuparams.n_threads = threads
params.cpuparams_batch.n_threads = threads
began = time.time()
server = xllamacpp.Server(params)
load = time.time() - began
request = {
    "messages": [{"role": "user", "content": prompt}],
    "max_tokens": tokens,
    "temperature": 0,
    "cache_prompt": False,
}
used = time.process_time()
answer = server.handle_chat_completions(request)
if isinstance(answer, (str, bytes)):
    answer = json.loads(answer)
used = time.process_time() - used
timings = answer["timings"]
peak = 0
for line in open("/proc/self/status"):
    if line.startswith("VmHWM:"):
        peak = int(line.split()[1]) * 1024
print(
    "RESULT "
    + json.dumps(
        {
            "load_s": load,
            "prompt_tokens": timings["prompt_n"],
            "prompt_per_s": timings["prompt_per_second"],
            "written_tokens": timings["predicted_n"],
            "written_per_s": timings["predicted_per_second"],
            "peak_bytes": peak,
            "cpu_s": used,
            "text": answer["choices"][0]["message"]["content"],
        }
    ),
    flush=True,
)

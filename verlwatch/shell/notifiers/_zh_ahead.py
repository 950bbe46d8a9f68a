"""Chinese words for the rules about what lies ahead: memory, room for checkpoints, the end of the time."""
# ruff: noqa: RUF001 - full-width punctuation is how Chinese is written

from __future__ import annotations

from verlwatch.shell.notifiers._zh_rule import Words, exactly

_GB = r"([-0-9.,e+]+ GB)"
_WHAT = r"(host memory|device memory \(peak (?:allocated|reserved)\))"
_GROWTH = r"([-0-9.e+]+ GB a step \([-0-9.e+]+ to [-0-9.e+]+\))"
_PACE = r"([-0-9.e+]+) s a step"
_DRIFT = r"(, [-+0-9.e]+ s with each|)"
_TITLES = (
    (
        rf"{_WHAT} will be full in (.+): {_GB} of {_GB}, ([-0-9.e+]+ GB) more each step",
        "{0:v}还有 {1:v} 就会占满：{2}（上限 {3}），每步增加 {4}",
    ),
    (rf"{_WHAT} is at its limit: {_GB} of {_GB}", "{0:v}已到上限：{1}（上限 {2}）"),
    (
        rf"{_WHAT} has grown by {_GROWTH} since step ([0-9]+) and will be full in (.+)",
        "{0:v}自第 {2} 步起增长{1:v}，还有 {3:v} 就会占满",
    ),
    (
        rf"{_WHAT} has grown by {_GROWTH} since step ([0-9]+) and is at its limit",
        "{0:v}自第 {2} 步起增长{1:v}，已到上限",
    ),
    (rf"disk of the checkpoints: (.+) \({_GB} of {_GB} free\)", "检查点所在磁盘：{0:v}（剩余 {1}，共 {2}）"),
    (
        rf"(.+) has {_GB} of {_GB} free; a checkpoint every ([0-9]+) steps takes (.+?): (.+)",
        "{0} 剩余 {1}（共 {2}）；每 {3} 步一个检查点，占用 {4:v}：{5:v}",
    ),
    (
        r"will be at (step [0-9]+(?: to [0-9]+)? of [0-9]+) when its time is over in (.+); (.+) more are needed",
        "剩余时间 {1:v}，届时将到达{0:v}；还缺 {2:n}",
    ),
    (
        r"is at (step [0-9]+ of [0-9]+) now that its time is over; (.+) more are needed",
        "时限已到，目前为{0:v}；还缺 {1:n}",
    ),
    (
        rf"([0-9]+) steps are left and take (.+?) \({_PACE}{_DRIFT}\); (.+) is left \((.+)\), (.+) too little",
        "剩下的 {0} 步需要 {1:n}（每步 {2} 秒{3:v}）；剩余时间 {4:v}（{5:v}），少 {6:n}",
    ),
)
_VALUES = (
    (r"host memory", "主机内存"),
    (r"device memory \(peak allocated\)", "显存峰值（已分配）"),
    (r"device memory \(peak reserved\)", "显存峰值（已保留）"),
    (r"about ([0-9]+) steps?, about (.+)", "约 {0} 步，约 {1:n}"),
    (r"about ([0-9]+) steps?", "约 {0} 步"),
    (r"([0-9]+) steps?, about (.+)", "{0} 步，约 {1:n}"),
    (r"([0-9]+) steps?", "{0} 步"),
    (r"([0-9]+) to ([0-9]+) steps, about (.+)", "{0} 至 {1} 步，约 {2:n}"),
    (r"([0-9]+) to ([0-9]+) steps", "{0} 至 {1} 步"),
    (r"the next checkpoint does not fit, in (.+)", "还有 {0:v}，届时放不下下一个检查点"),
    (r"room for ([0-9]+) more checkpoints?, (.+)", "还放得下 {0} 个检查点，{1:v}"),
    (r"step ([0-9]+) to ([0-9]+) of ([0-9]+)", "第 {0} 至 {1} 步（共 {2} 步）"),
    (r"([-0-9.e+]+) GB a step \(([-0-9.e+]+) to ([-0-9.e+]+)\)", "每步 {0} GB（{1} 至 {2}）"),
    (rf"{_GB}, {_GB} at once", "{0}，写入时需 {1}"),
    (rf"{_GB} of {_GB}", "{0}（共 {1}）"),
    (rf"{_PACE}{_DRIFT}", "每步 {0} 秒{1:v}"),
    (r", ([-+0-9.e]+) s with each", "，且每步 {0} 秒"),
    (r"nothing", "已无"),
    (r"now", "已到上限"),
    (r"([0-9.]+ (?:s|min|h|d)) to ([0-9.]+ (?:s|min|h|d))", "{0:n} 至 {1:n}"),
    (
        r"([0-9]+%) of ([0-9.,e+]+ GB) by (runs\[\]\.host_memory), where Ray kills \((\w+)\)",
        "{1}（{2}）的 {0}，到此 Ray 会终止进程（{3}）",
    ),
    (
        r"([0-9]+%) of ([0-9.,e+]+ GB) as Ray has told, where Ray kills \((\w+)\)",
        "{1}（Ray 所述）的 {0}，到此 Ray 会终止进程（{2}）",
    ),
    (
        r"([0-9]+%) of ([0-9.,e+]+ GB) of this host, where Ray kills \((\w+)\)",
        "本机 {1} 的 {0}，到此 Ray 会终止进程（{2}）",
    ),
    (
        r"([0-9]+%) of ([0-9.,e+]+ GB) of (.+), where Ray kills \((\w+)\)",
        "{2} 的 {1} 的 {0}，到此 Ray 会终止进程（{3}）",
    ),
    (
        r"([0-9.e+]+ GB) of the card less ([0-9.e+]+ GB) outside PyTorch's allocator",
        "显卡共 {0}，减去 PyTorch 分配器之外的 {1}",
    ),
    (r"([0-9.e+]+ GB) of the card", "显卡共 {0}"),
    (r"Slurm's time limit", "Slurm 的时限"),
)
_EVIDENCE = (
    (
        rf"step ([0-9]+): {_GB} of {_GB}; {_GB} at step ([0-9]+)",
        "第 {0} 步：{1}，上限 {2}；第 {4} 步时为 {3}",
    ),
    (
        rf"growth of the last ([0-9]+) steps: {_GROWTH}, nine times of ten",
        "最近 {0} 步的增长：{1:v}，九成把握",
    ),
    (r"limit: (.+)", "上限：{0:v}"),
    (rf"(.+): {_GB} of {_GB} free", "{0}：剩余 {1}（共 {2}）"),
    (
        r"([0-9]+) checkpoints, one every ([0-9]+) steps, took (.+) each; whoever else writes there counts too",
        "{0} 个检查点，每 {1} 步一个，每个占用 {2:v}；其他人写入的也计算在内",
    ),
    (
        rf"step ([0-9]+) of ([0-9]+); {_PACE} with its share of validation and checkpoints{_DRIFT}",
        "第 {0}/{1} 步；每步 {2} 秒，含分摊的验证与检查点{3:v}",
    ),
    (r"needs ([^,]+), has (.+) \((.+)\)", "需要 {0:v}，剩余 {1:v}（{2:v}）"),
    *exactly({
        "psutil's `used`, which verl prints, leaves out shared memory in most releases, as Ray's object store has it; "
        "Ray counts it, so that it may come sooner":
            "verl 打印的是 psutil 的 `used`，多数版本不含共享内存（例如 Ray 的 object store）；"
            "Ray 会把它计入，因此可能更早",
        "a peak since the process started: it can only rise, so that it is weaker evidence than memory in use":
            "这是进程启动以来的峰值，只升不降：作为证据弱于当前占用",
        "PyTorch gives cached blocks back before it is out of memory: steps may become slower first":
            "显存不足之前 PyTorch 会先释放缓存：可能先变慢",
    }),
)  # fmt: skip
_ADVICE = exactly({
    "Save a checkpoint while it goes, and resume from it: a new process begins with less.":
        "趁还在运行先保存检查点，再从它恢复：新进程占用更少。",
    "Look at what accumulates on the host: data loader workers, offloaded or pinned buffers, Ray's object store, kept "
    "rollouts, other jobs. `ray memory` and `ps --sort=-rss` name who holds it.":
        "看主机上什么在堆积：数据加载进程、offload 或锁页的缓冲、Ray 的 object store、保留的 rollout、其他任务。"
        "`ray memory` 和 `ps --sort=-rss` 能看出是谁占用。",
    "Look at the longest sequences and micro batch sizes, and at tensors that are kept from step to step.":
        "看最长的序列和 micro batch 大小，以及逐步保留下来的张量。",
    "If little of what is reserved is allocated, it is fragmentation: "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.":
        "若已保留的显存中已分配的很少，则是碎片：PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True。",
    "Free room there, or let verl keep fewer: trainer.max_actor_ckpt_to_keep and trainer.max_critic_ckpt_to_keep.":
        "腾出空间，或让 verl 少保留几个：trainer.max_actor_ckpt_to_keep、trainer.max_critic_ckpt_to_keep。",
    "Ask for more time (`scontrol update JobId=… TimeLimit=…` where that is allowed), or save a checkpoint shortly "
    "before (trainer.save_freq).":
        "申请更多时间（若允许：`scontrol update JobId=… TimeLimit=…`），或在到时之前保存检查点（trainer.save_freq）。",
})  # fmt: skip
WORDS = Words(
    rules=("host_memory_forecast", "device_memory_forecast", "disk_forecast", "deadline"),
    titles=_TITLES,
    values=_VALUES,
    evidence=_EVIDENCE,
    advice=_ADVICE,
    labels={
        "Now": "目前",
        "Growth": "增长",
        "Full in": "占满还有",
        "Limit": "上限",
        "Free": "剩余",
        "A checkpoint takes": "每个检查点占用",
        "Room for": "还能放",
        "Directory": "目录",
        "Reaches": "届时到达",
        "Needs": "还需要",
        "Left": "剩余时间",
        "Pace": "速度",
    },
    quoted=frozenset({"Directory"}),
)

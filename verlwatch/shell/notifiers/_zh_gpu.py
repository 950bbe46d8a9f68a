"""Chinese words for the rules about GPUs: their memory, their work, their faults."""
# ruff: noqa: RUF001 - full-width punctuation is how Chinese is written

from __future__ import annotations

from verlwatch.shell.notifiers._zh_rule import Words, exactly

_GB = r"([-+0-9.e]+ GB)"
_RATE = r"[-+0-9.e]+ GB an? (?:step|hour)"
_TITLES = (
    (r"(.+), full (within a step|in .+)", "{0:t}，{1:v}占满"),
    (rf"(.+), ((?:growing|falling) {_RATE})(?:, full )?", "{0:t}，{1:v}"),
    (
        rf"(.+) holds {_GB} while its peers hold {_GB}: {_GB} more than its peers since step ([0-9]+)",
        "{0:c} 占用 {1}，同组为 {2}：自第 {4} 步起多 {3}",
    ),
    (
        rf"(.+) holds {_GB} while its peers hold {_GB}: {_GB} less than its peers since step ([0-9]+)",
        "{0:c} 占用 {1}，同组为 {2}：自第 {4} 步起少 {3}",
    ),
    (rf"(.+) holds {_GB} more than its peers since step ([0-9]+)", "{0:c} 自第 {2} 步起比同组多占 {1} 显存"),
    (rf"(.+) holds {_GB} less than its peers since step ([0-9]+)", "{0:c} 自第 {2} 步起比同组少占 {1} 显存"),
    (
        rf"the memory of (.+) is spread over {_GB}: (.+) holds most, (.+) least",
        "{0:v}的显存相差 {1}：{2:c} 最多，{3:c} 最少",
    ),
    (rf"all ([0-9]+) cards of \1 cards fill up: {_GB} of {_GB}", "全部 {0} 张卡都在占满：{1}（共 {2}）"),
    (rf"all ([0-9]+) cards of (.+) fill up: {_GB} of {_GB}", "{1:v}的全部 {0} 张卡都在占满：{2}（共 {3}）"),
    (r"(.+), least in (.+) \(([0-9]+) %\)", "{0:t}，最低在{1:p}（{2} %）"),
    (
        r"(.+) is busy ([0-9]+) % of the time over the last (.+) of training, its peers ([0-9]+) %",
        "最近 {2:n}训练中，{0:c} 只有 {1} % 的时间在计算，同组为 {3} %",
    ),
    (
        r"the GPUs are busy ([0-9]+) % of the time over the last (.+) of training",
        "最近 {1:n}训练中，各 GPU 只有 {0} % 的时间在计算",
    ),
    (r"(.+) has vanished: its host does not see it any more", "{0:c} 消失了：其主机已看不到它"),
    (r"((?:GPU|the GPUs)\b.*?): (.+), ([0-9]+) times", "{0:c}：{1:v}，{2} 次"),
    (r"((?:GPU|the GPUs)\b.*?): (.+)", "{0:c}：{1:v}"),
    (
        r"(.+) has stayed where it is for ([0-9]+) steps; this is its normal now",
        "{0:c} 的差距已有 {1} 步没有变化，今后视为正常",
    ),
    (r"(.+) does other work than the cards that it was compared with", "{0:c} 与此前相比较的卡做的不是同样的工作"),
    (
        rf"(.+) holds what its peers hold again \({_GB} (?:more|less)\), at step ([0-9]+)",
        "{0:c} 的显存已与同组相同（相差 {1}），第 {2} 步",
    ),
    (r"(.+) holds what its peers hold again, at step ([0-9]+)", "{0:c} 的显存已与同组相同，第 {1} 步"),
    (
        rf"(.+) holds what it did before, beside its peers again \({_GB} (?:more|less)\), at step ([0-9]+)",
        "{0:c} 与同组的差距已恢复原样（相差 {1}），第 {2} 步",
    ),
    (
        r"(.+) holds what it did before, beside its peers again, at step ([0-9]+)",
        "{0:c} 与同组的差距已恢复原样，第 {1} 步",
    ),
)
_FAULTS = {
    "graphics engine exception": "图形引擎异常",
    "memory page fault": "显存缺页错误",
    "a process' channel was reset": "有进程的通道被重置",
    "preemptive cleanup, as after a process was killed": "抢先清理，如进程被终止之后",
    "double bit ECC error": "双比特 ECC 错误",
    "a row of memory is to be remapped": "有显存行待重映射",
    "a row of memory could not be remapped": "有显存行无法重映射",
    "NVLink error": "NVLink 错误",
    "the card has fallen off the bus": "卡已从总线脱落",
    "many single bit ECC errors": "大量单比特 ECC 错误",
    "contained ECC error": "受控的 ECC 错误",
    "uncontained ECC error": "未受控的 ECC 错误",
    "the card's own processor does not answer (GSP)": "卡上的处理器（GSP）没有响应",
    "error of the card's own processor (GSP)": "卡上的处理器（GSP）出错",
    "see NVIDIA's list of Xid errors": "含义见 NVIDIA 的 Xid 列表",
    "memory errors that ECC could not correct": "ECC 无法纠正的显存错误",
    "the driver was loaded anew": "驱动被重新加载",
    "cannot be read": "无法读取",
    "errors on its NVLinks": "NVLink 有错误",
    "PCIe transfers are repeated": "PCIe 传输在重传",
    "slowed down by heat": "因过热降速",
    "slowed down by its hardware (power brake, heat)": "被硬件降速（供电制动、过热）",
    "fault": "故障",
}
_VALUES = (
    (r"within a step", "一步之内"),
    (r"in ([0-9]+) steps? \((.+)\)", "{0} 步（{1:n}）后"),
    (r"in ([0-9]+) steps?", "{0} 步后"),
    (r"in ([0-9.]+ (?:s|min|h))", "{0:n}后"),
    (rf"growing {_GB} a step", "每步增加 {0}"),
    (rf"growing {_GB} an hour", "每小时增加 {0}"),
    (rf"falling {_GB} a step", "每步减少 {0}"),
    (rf"falling {_GB} an hour", "每小时减少 {0}"),
    (rf"{_GB} \({_GB} before\)", "{0}（此前 {1}）"),
    (rf"{_GB} of {_GB}", "{0}（共 {1}）"),
    (r"([0-9]+) cards", "{0} 张卡"),
    (r"Xid ([0-9]+): (.+)", "Xid {0}：{1:v}"),
    (r"host (\S+, .+)", "主机 {0:v}"),
    (r"(.+, )?rank unknown(, .+)?", "{0}rank 未知{1}"),
    (r"((?:GPU \S+|the GPUs)(?: \(rank \S+\))? on \S+|the GPUs)", "{0:c}"),
    *exactly(_FAULTS),
)
_EVIDENCE = (
    (
        r"memory that PyTorch's allocator holds, as each process prints it at the same stage of a step; (.+)",
        "PyTorch 分配器持有的显存，由各进程在同一步的同一阶段打印；{0:v}",
    ),
    (r"all memory in use on the card, whoever holds it; (.+)", "卡上已用的全部显存，不论由谁占用；{0:v}"),
    (
        rf"offset from its peers {_GB} before step ([0-9]+), {_GB} by now",
        "与同组的差距：第 {1} 步之前为 {0}，目前为 {2}",
    ),
    (
        r"the peaks of each step have climbed along a line since step ([0-9]+)",
        "自第 {0} 步起，各步峰值沿一条直线上升",
    ),
    (r"(\S+): busy ([0-9]+) %, ([0-9]+%) of the time", "{0}：{1} % 的时间在计算，占总时间的 {2}"),
    (r"no phase stands out", "没有哪个阶段特别突出"),
    (r"its host tells its other cards", "其主机仍在报告其他卡"),
    (r"the driver does not list it", "驱动没有列出它"),
    (r"([0-9]+) more", "又增加 {0} 次"),
    *exactly(_FAULTS),
)
_MEDIAN = (
    (r"median of ([0-9]+) cards \(\1 cards\)", "{0} 张卡的中位数"),
    (r"median of ([0-9]+) cards \((.+)\)", "{0} 张卡（{1:v}）的中位数"),
    (rf"(.+) {_GB}, (.+) {_GB} from the median", "与中位数相比：{0:c} 为 {1}，{2:c} 为 {3}"),
)
_ADVICE = exactly({
    "Compare what the card runs with its peers: nvidia-smi on its host, other processes on it, the layout of ranks "
    "(tensor_model_parallel_size, device mesh), parameters that were not sharded.":
        "比较该卡与同组在运行什么：其主机上的 nvidia-smi、卡上的其他进程、rank 的布局"
        "（tensor_model_parallel_size、device mesh）、未被切分的参数。",
    "Look at what this rank alone keeps: tensors held in lists or closures, growing caches, a reward or tool process "
    "on its card; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True if it is fragmentation.":
        "看只有这个 rank 留着什么：列表或闭包里的张量、不断增长的缓存、其卡上的奖励或工具进程；"
        "若是碎片：PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True。",
    "Save a checkpoint before the card is full; torch.cuda.memory._dump_snapshot on that rank shows what holds it.":
        "在卡占满之前保存检查点；在该 rank 上用 torch.cuda.memory._dump_snapshot 可看出是谁占用。",
    "Look at what began on that card at that step: another process (nvidia-smi), a worker that was started again, "
    "weights that were loaded twice.":
        "看那一步在该卡上开始了什么：其他进程（nvidia-smi）、重新启动的 worker、被加载两次的权重。",
    "Look whether a process on that card has died or was not started again.":
        "看该卡上是否有进程已死，或没有重新启动。",
    "Look at what grows on every rank: longer responses (response_length), micro batch sizes, caches; "
    "rollout.gpu_memory_utilization leaves room, param_offload and optimizer_offload make some.":
        "看每个 rank 上什么在增长：更长的回答（response_length）、micro batch 大小、缓存；"
        "调低 rollout.gpu_memory_utilization 可留出空间，param_offload 和 optimizer_offload 可腾出空间。",
    "Look at the phase in which cards wait: rewards computed on CPUs, a long tail of one generation, data loading, "
    "offload to host memory.":
        "看卡在哪个阶段等待：在 CPU 上计算的奖励、生成的长尾、数据加载、offload 到主机内存。",
    "Look at that card's host: a rank that waits for its peers, or whose process does nothing (py-spy dump).":
        "看该卡的主机：该 rank 在等其他 rank，或其进程什么都没做（py-spy dump）。",
    "Mostly an error of the program that ran: look for its traceback; if it comes back on one card only, suspect it.":
        "多半是所运行程序的错误：找它的 traceback；若只在一张卡上反复出现，则怀疑该卡。",
    "Take the card out of use and reset it or its node.": "停用该卡，并重置它或其节点。",
    "Reset the card when the run has ended.": "训练结束后重置该卡。",
    "Watch the card; have it replaced if it goes on.": "留意该卡；若持续，请更换。",
    "The process that ran is lost; reset the card when it can be.": "当时运行的进程已失去；可以时重置该卡。",
    "Whatever ran on the host's cards has lost them.": "该主机各卡上运行的一切都已失去它们。",
    "Look at the driver (nvidia-smi) and who may ask it on that host.": "看该主机的驱动（nvidia-smi）和查询权限。",
    "Look at nvidia-smi nvlink -e; collectives wait for this card.": "看 nvidia-smi nvlink -e；集合通信会等这张卡。",
    "Look at the seat and the riser of the card.": "检查该卡的插槽与转接板。",
    "Look at fans, air and the load of the neighbours.": "检查风扇、风道和相邻卡的负载。",
    "Look at power and cooling.": "检查供电与散热。",
    "Look at the kernel's log of that host (dmesg | grep -i -e NVRM -e Xid): a card that has fallen off the bus needs "
    "a reset of the node. The run hangs or dies with it.":
        "看该主机的内核日志（dmesg | grep -i -e NVRM -e Xid）：从总线脱落的卡需要重置节点；训练会随之挂住或退出。",
})  # fmt: skip
WORDS = Words(
    rules=("memory_divergence", "memory_offset_change", "memory_headroom", "gpu_idle", "gpu_fault", "gpu_missing"),
    titles=_TITLES,
    values=(*_MEDIAN, *_VALUES),
    evidence=_EVIDENCE,
    advice=_ADVICE,
    labels={
        "Holds": "占用",
        "Peers hold": "同组占用",
        "Offset": "与同组的差距",
        "Growth": "增长",
        "Full": "占满",
        "Fullest card": "最满的卡",
        "Spread": "相差",
        "Busy": "计算时间占比",
        "Peers busy": "同组计算时间占比",
        "Idle in": "空闲的阶段",
        "Fault": "故障",
        "Last seen in step": "最后见于步",
    },
    quoted=frozenset({"Idle in"}),
)

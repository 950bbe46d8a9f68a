"""What phases and metrics are called in Chinese."""
# ruff: noqa: RUF001 - full-width punctuation is how Chinese is written

from __future__ import annotations

from collections.abc import Mapping

from verlwatch.core.phases import STEP, THROUGHPUT

PHASES: Mapping[str, str] = {
    "gen": "生成",
    "gen_max": "最慢的生成",
    "reward": "奖励计算",
    "old_log_prob": "旧策略概率",
    "ref": "参考模型",
    "values": "价值估计",
    "adv": "优势计算",
    "update_critic": "critic 更新",
    "update_actor": "actor 更新",
    "update_weights": "权重同步",
    "testing": "验证",
    "save_checkpoint": "保存检查点",
    STEP: "整步",
    THROUGHPUT: "吞吐",
    "mfu_actor": "actor 的 MFU",
    "mfu_critic": "critic 的 MFU",
    "mfu_actor_infer": "actor 推理的 MFU",
    "cpu_memory_used_gb": "主机内存",
    "max_memory_allocated_gb": "显存峰值（已分配）",
    "max_memory_reserved_gb": "显存峰值（已保留）",
    "critic_max_memory_allocated_gb": "critic 显存峰值（已分配）",
    "critic_max_memory_reserved_gb": "critic 显存峰值（已保留）",
    "all_phases": "全部阶段",
    "slowest_sample": "最慢样本与平均样本之比",
    "preemptions": "每个样本的抢占次数",
    "tool_wait": "工具调用占样本时间的比例",
    "aborted": "被中止的样本比例",
    "clipped": "被截断的回答比例",
    "grad_norm": "actor 梯度范数",
    "critic_grad_norm": "critic 梯度范数",
    "entropy": "策略熵",
    "kl": "KL 散度",
    "score": "平均奖励",
    "response_length": "平均回答长度",
    "losses": "损失与梯度",
}

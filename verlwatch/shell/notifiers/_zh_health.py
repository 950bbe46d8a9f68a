"""Chinese words for the rules about samples and about the training itself."""
# ruff: noqa: RUF001 - full-width punctuation is how Chinese is written

from __future__ import annotations

import re

from verlwatch.core.metrics import MEASURES
from verlwatch.shell.notifiers._zh_rule import Pairs, Words, exactly

_N = r"([-+0-9.e]+|-?inf|nan)"
_WHAT = r"(.+ instead of .+ since .*step [0-9]+)"
_UNITS = {"": "", "/sample": " 次/样本", "×": " 倍", "%": "%"}
_OF = {f" {m.unit}".rstrip(): _UNITS.get(m.unit, f" {m.unit}") for m in MEASURES.values()}
"""As a number is followed by it, in English and in Chinese."""


def _moved() -> Pairs:
    """A value instead of another, by unit and by how sure the step is."""
    pairs: list[tuple[str, str]] = []
    for unit, chinese in _OF.items():
        now, before = f"{{0}}{chinese}", f"{{1}}{chinese}"
        pairs += [
            (
                rf"{_N} instead of {_N}{re.escape(unit)} since about step ([0-9]+)",
                f"约自第 {{2}} 步起为 {now}，此前为 {before}",
            ),
            (
                rf"{_N} instead of {_N}{re.escape(unit)} since step ([0-9]+)",
                f"自第 {{2}} 步起为 {now}，此前为 {before}",
            ),
        ]
    return tuple(pairs)


def _plain() -> Pairs:
    return tuple((rf"{_N}{re.escape(unit)}", f"{{0}}{chinese}") for unit, chinese in _OF.items())


def _seen() -> Pairs:
    """Evidence: what a step showed, and what has changed since when."""
    pairs: list[tuple[str, str]] = []
    for unit, chinese in _OF.items():
        changed = f"{{1}}{chinese}，此前为 {{2}}{chinese}"
        pairs += [
            (rf"step ([0-9]+): (\w+) {_N}{re.escape(unit)}", f"第 {{0}} 步：{{1}} 为 {{2}}{chinese}"),
            (rf"since about step ([0-9]+): {_N} instead of {_N}{re.escape(unit)}", f"约自第 {{0}} 步起：{changed}"),
            (rf"since step ([0-9]+): {_N} instead of {_N}{re.escape(unit)}", f"自第 {{0}} 步起：{changed}"),
        ]
    return tuple(pairs)


_NAN = r"\S+ is (?:nan|-?inf)"
_NOT_FINITE = rf"({_NAN}(?:, {_NAN})*(?: and [0-9]+ more)?|the gradient norm of a worker is (?:nan|-?inf))"
_TITLES = (
    (rf"more samples are aborted: {_WHAT}", "被中止的样本变多：{0:v}"),
    (
        rf"the share of samples without a response is {_WHAT}: fewer are learned from",
        "没有回答的样本占比{0:v}：可学习的样本变少",
    ),
    (rf"samples are preempted in the engine: {_WHAT}", "推理引擎在抢占样本：{0:v}"),
    (
        rf"preemptions per sample are {_WHAT}: the KV cache is full, and their tokens are computed again",
        "每个样本的抢占次数{0:v}：KV cache 已满，被抢占的 token 要重新计算",
    ),
    (rf"more responses are cut at the longest length: {_WHAT}", "因达到最大长度而被截断的回答变多：{0:v}"),
    (
        rf"the share of responses that end only because they are as long as allowed is {_WHAT}",
        "只因达到最大长度而结束的回答占比{0:v}",
    ),
    (rf"gradients of the (actor|critic) have grown ×(\S+): {_WHAT}", "{0} 的梯度增大到 {1} 倍：{2:v}"),
    (rf"the gradient norm of the (actor|critic) is {_WHAT}", "{0} 的梯度范数{1:v}"),
    (rf"entropy has collapsed: {_WHAT}", "策略熵崩溃：{0:v}"),
    (rf"the policy's entropy has fallen much faster than before, to {_WHAT}", "策略熵下降得远快于此前：{0:v}"),
    (rf"KL to the reference explodes: {_WHAT}", "与参考模型的 KL 激增：{0:v}"),
    (
        rf"the policy has left its reference much faster than before: KL is {_WHAT}",
        "策略偏离参考模型远快于此前：KL {0:v}",
    ),
    (rf"rewards have collapsed: {_WHAT}", "奖励崩溃：{0:v}"),
    (rf"the mean score has fallen to {_WHAT}", "平均奖励下降：{0:v}"),
    (rf"responses have become short: {_WHAT}", "回答变短：{0:v}"),
    (rf"the mean response has become much shorter within few steps: {_WHAT}", "平均回答长度在几步之内大幅变短：{0:v}"),
    (rf"samples wait for their tools for more of their time: {_WHAT}", "样本等待工具的时间占比变大：{0:v}"),
    (rf"the share of a sample's time that tool calls take is {_WHAT}", "工具调用占样本时间的比例{0:v}"),
    (r"generation waits for its slowest (sample|rank): (.+)", "生成在等最慢的 {0:v}：{1:v}"),
    (
        r"the slowest (sample|rank) takes (\S+)× the mean since about step ([0-9]+), not (\S+)×",
        "约自第 {2} 步起，最慢的 {0:v} 耗时是平均的 {1} 倍，此前为 {3} 倍",
    ),
    (
        r"the slowest (sample|rank) takes (\S+)× the mean since step ([0-9]+), not (\S+)×",
        "自第 {2} 步起，最慢的 {0:v} 耗时是平均的 {1} 倍，此前为 {3} 倍",
    ),
    (rf"{_NOT_FINITE} at step ([0-9]+), for ([0-9]+) steps now", "{0:v}（第 {1} 步，已连续 {2} 步）"),
    (rf"{_NOT_FINITE} at step ([0-9]+)", "{0:v}（第 {1} 步）"),
)
_VALUES = (
    *_moved(),
    (r"(\S+) s of gen (\S+) s, mean (\S+) s", "{0} 秒（gen 共 {1} 秒），平均 {2} 秒"),
    (r"(\S+) s, mean (\S+) s", "{0} 秒，平均 {1} 秒"),
    (r"the gradient norm of a worker is (\S+)", "有 worker 的梯度范数为 {0}"),
    (rf"({_NAN}.*) and ([0-9]+) more", "{0:v} 等（另 {1} 个）"),
    (r"(\S+) is (nan|-?inf), (.+)", "{0} 为 {1}，{2:v}"),
    (r"(\S+) is (nan|-?inf)", "{0} 为 {1}"),
    (r"sample", "样本"),
    (r"rank", "rank"),
    *_plain(),
)
_EVIDENCE = (
    (r"step ([0-9]+): slowest (sample|rank) (.+, mean .+)", "第 {0} 步：最慢的 {1:v} 为 {2:v}"),
    *_seen(),
    (r"step ([0-9]+): (\S+) (nan|-?inf)", "第 {0} 步：{1} 为 {2}"),
    (rf"(\w+): {_WHAT}", "{0}：{1:v}"),
    (r"its response has ([0-9]+) tokens, the mean one ([0-9]+)", "其回答有 {0} 个 token，平均 {1} 个"),
    (r"tool calls took (\S+) s of it", "其中工具调用用了 {0} 秒"),
    (r"it was preempted ([0-9]+) times", "它被抢占了 {0} 次"),
    (r"grad_norm is not finite, say workers: ranks (.+)", "worker 报告 grad_norm 不是有限数值：rank {0}"),
    (r"grad_norm is not finite, say workers", "worker 报告 grad_norm 不是有限数值"),
)
_ADVICE = exactly({
    "If the slowest response is as long as data.max_response_length allows: lower that, or punish such responses "
    "(reward_model.overlong_buffer).":
        "若最慢的回答已达 data.max_response_length：调低它，或惩罚这类回答（reward_model.overlong_buffer）。",
    "If it waits for tools: set their time-outs, actor_rollout_ref.rollout.multi_turn.max_assistant_turns and "
    "actor_rollout_ref.rollout.multi_turn.max_tool_response_length.":
        "若在等工具：设置工具超时、actor_rollout_ref.rollout.multi_turn.max_assistant_turns 和 "
        "actor_rollout_ref.rollout.multi_turn.max_tool_response_length。",
    "If it was preempted: raise actor_rollout_ref.rollout.gpu_memory_utilization or lower "
    "actor_rollout_ref.rollout.max_num_seqs.":
        "若被抢占：调高 actor_rollout_ref.rollout.gpu_memory_utilization，或调低 "
        "actor_rollout_ref.rollout.max_num_seqs。",
    "Give the KV cache more room: actor_rollout_ref.rollout.gpu_memory_utilization, or a larger "
    "actor_rollout_ref.rollout.tensor_model_parallel_size.":
        "给 KV cache 更多空间：actor_rollout_ref.rollout.gpu_memory_utilization，或更大的 "
        "actor_rollout_ref.rollout.tensor_model_parallel_size。",
    "Let fewer samples run at once: actor_rollout_ref.rollout.max_num_seqs; or limit their length: "
    "data.max_response_length.":
        "让同时运行的样本更少：actor_rollout_ref.rollout.max_num_seqs；或限制长度：data.max_response_length。",
    "Look at the tool servers or the sandbox: load, time-outs, retries, limits of requests.":
        "检查工具服务或沙箱：负载、超时、重试、请求上限。",
    "Set time-outs in the file of actor_rollout_ref.rollout.multi_turn.tool_config_path, and limit turns and answers: "
    "actor_rollout_ref.rollout.multi_turn.max_assistant_turns, "
    "actor_rollout_ref.rollout.multi_turn.max_tool_response_length.":
        "在 actor_rollout_ref.rollout.multi_turn.tool_config_path 的文件里设置超时，并限制轮数与返回长度："
        "actor_rollout_ref.rollout.multi_turn.max_assistant_turns、"
        "actor_rollout_ref.rollout.multi_turn.max_tool_response_length。",
    "Look in the log of the rollout workers for what aborts them: time-outs, prompts over data.max_prompt_length, "
    "errors of tools or of the engine.":
        "看 rollout 进程的日志里什么中止了它们：超时、过长的提示（data.max_prompt_length）、工具或引擎的错误。",
    "Compare actor_rollout_ref.rollout.max_model_len with data.max_prompt_length + data.max_response_length.":
        "比较 actor_rollout_ref.rollout.max_model_len 与 data.max_prompt_length + data.max_response_length。",
    "Read some of them: if they repeat themselves, the policy is collapsing; if they are cut in good reasoning, raise "
    "data.max_response_length and actor_rollout_ref.rollout.max_model_len.":
        "读几条回答：若在重复，说明策略在崩溃；若推理正常却被截断，调高 data.max_response_length 和 "
        "actor_rollout_ref.rollout.max_model_len。",
    "A cut response has no answer, and gets no reward: consider reward_model.overlong_buffer or "
    "algorithm.filter_groups.":
        "被截断的回答没有答案，也没有奖励：考虑 reward_model.overlong_buffer 或 algorithm.filter_groups。",
    "Lower actor_rollout_ref.actor.optim.lr; look at actor_rollout_ref.actor.grad_clip and at the advantages of that "
    "step.":
        "调低 actor_rollout_ref.actor.optim.lr；看 actor_rollout_ref.actor.grad_clip 和该步的 advantage。",
    "Compare the probabilities of the engine and the trainer (training/rollout_probs_diff_max): where they differ, the "
    "gradients are wrong.":
        "比较推理引擎与训练端的概率（training/rollout_probs_diff_max）：不一致则梯度有误。",
    "Lower critic.optim.lr; look at critic.grad_clip, critic.cliprange_value and the returns.":
        "调低 critic.optim.lr；看 critic.grad_clip、critic.cliprange_value 和 returns。",
    "Read some responses: are they all alike?  Go back to a checkpoint before it if so.":
        "读几条回答：是否都一样？若是，退回到此前的检查点。",
    "Lower actor_rollout_ref.actor.optim.lr; raise actor_rollout_ref.actor.clip_ratio_high, "
    "actor_rollout_ref.actor.entropy_coeff or actor_rollout_ref.rollout.temperature.":
        "调低 actor_rollout_ref.actor.optim.lr；调高 actor_rollout_ref.actor.clip_ratio_high、"
        "actor_rollout_ref.actor.entropy_coeff 或 actor_rollout_ref.rollout.temperature。",
    "Go back to a checkpoint before it, with a lower actor_rollout_ref.actor.optim.lr or a higher "
    "actor_rollout_ref.actor.kl_loss_coef (algorithm.kl_ctrl.kl_coef).":
        "退回到此前的检查点，并调低 actor_rollout_ref.actor.optim.lr，或调高 "
        "actor_rollout_ref.actor.kl_loss_coef（algorithm.kl_ctrl.kl_coef）。",
    "Look at the lengths and the rewards of that step: a reward that can be hacked is run after.":
        "看该步的长度与奖励：能被钻空子的奖励会被钻空子。",
    "Is it the reward or the policy?  Look at the reward service or sandbox (time-outs count as zero), and at data "
    "that began with that step.":
        "是奖励还是策略的问题？检查奖励服务或沙箱（超时按零计），以及从该步开始的数据。",
    "If responses changed with it, go back to a checkpoint before it, with a lower actor_rollout_ref.actor.optim.lr.":
        "若回答也随之改变，退回到此前的检查点，并调低 actor_rollout_ref.actor.optim.lr。",
    "Read some responses: a reward that does not need reasoning, or punishes length, is answered without it.":
        "读几条回答：不需要推理或惩罚长度的奖励，不推理也能得到。",
    "Look at the reward of that step, at reward_model.overlong_buffer and at how losses are averaged "
    "(actor_rollout_ref.actor.loss_agg_mode).":
        "看该步的奖励、reward_model.overlong_buffer，以及损失如何平均（actor_rollout_ref.actor.loss_agg_mode）。",
    "If it stays, stop the run: the weights are lost.  Go back to a checkpoint before it, with a lower "
    "actor_rollout_ref.actor.optim.lr or actor_rollout_ref.actor.grad_clip.":
        "若一直如此，停止训练：权重已损坏。退回到此前的检查点，并调低 actor_rollout_ref.actor.optim.lr 或 "
        "actor_rollout_ref.actor.grad_clip。",
    "Once: verl skips that update (since 0.4).  Look for a batch without valid tokens, and for log-probabilities of "
    "minus infinity (data, actor_rollout_ref.rollout.top_p, top_k).":
        "若只有一次：verl 会跳过这次更新（0.4 起）。看是否有整批没有有效 token，或对数概率为负无穷"
        "（数据、actor_rollout_ref.rollout.top_p、top_k）。",
    "Compare the probabilities of the engine and the trainer (training/rollout_probs_diff_max).":
        "比较推理引擎与训练端的概率（training/rollout_probs_diff_max）。",
})  # fmt: skip
WORDS = Words(
    rules=(
        "long_tail", "preemptions", "tool_calls", "aborted", "response_clipping", "grad_norm_explosion",
        "entropy_collapse", "kl_explosion", "reward_collapse", "length_collapse", "not_finite",
    ),
    titles=_TITLES,
    values=_VALUES,
    evidence=_EVIDENCE,
    advice=_ADVICE,
)  # fmt: skip

"""What only the HTML file says, in Chinese, by its English templates."""
# ruff: noqa: RUF001 - full-width punctuation is how Chinese is written

from __future__ import annotations

from collections.abc import Mapping

HTML: Mapping[str, str] = {
    "{first} to {last}": "{first} 至 {last}",
    "of {planned}": "共 {planned} 步",
    "finished": "已完成",
    "read of": "来自",
    "Steps": "步",
    "Time of training": "训练时间",
    "not told": "未说明",
    "GPUs": "GPU",
    "Lost to changes": "变化造成的损失",
    "Where the seconds come from": "时间差来自哪里",
    "now": "现值",
    "try": "尝试",
    "why": "原因",
    "proof": "如何验证",
    "because of": "依据",
    "Step over time": "各步用时",
    "A step takes {median} s in the median, {low} to {high} s.": "一步的中位用时 {median} 秒，{low} 至 {high} 秒。",
    "Seconds of each step without validation and checkpoint; beside the colours the median step, and the share of all "
    "steps.": "每步的秒数，不含验证与检查点；颜色旁是中位的一步，以及占全部时间的比例。",
    "Each column is the mean of up to {count} steps, so that areas are time spent; the line above is the longest step "
    "of each column.": "每一列是至多 {count} 步的平均，因此面积就是所用时间；上方的线是每列中最长的一步。",
    "Numbers lead to the changes below; their bars last from the first slow step to the last.": (
        "编号指向下面的变化；横条从变慢的第一步延伸到最后一步。"
    ),
    "{count} changes find no room here; they are below.": "另有 {count} 处变化此处放不下，见下文。",
    "Each phase over the steps; the grey line is what its baseline expects of each step's work.": (
        "各阶段逐步的用时；灰线是基线按该步工作量预期的用时。"
    ),
    "median {median}, {low} to {high} {unit}": "中位 {median}，{low} 至 {high} {unit}",
    "Seconds against tokens": "用时与 token 数",
    "What lies on the same line only had more to do; what lies above it got slower.": (
        "落在同一条线上的只是工作更多；高出这条线的才是变慢。"
    ),
    "{phase}: seconds against tokens of the step": "{phase}：秒数对该步的 token 数",
    "as usual": "平时",
    "within a change": "变化期间",
    "{ms} ms per token as usual": "平时每 token {ms} 毫秒",
    "{ms} ms per token within a change": "变化期间每 token {ms} 毫秒",
    "Memory of each card: {kind}": "各卡显存：{kind}",
    "{count} card(s), {low} to {high} GB, steps {first} to {last}": (
        "{count} 张卡，{low} 至 {high} GB，第 {first} 至 {last} 步"
    ),
    "The most that each card held in the steps of a column; step 0 is before the first.": (
        "每一列取各卡在这些步里的最大值；第 0 步表示第一步之前。"
    ),
    "{count} cards that differ less are left out.": "另有 {count} 张差别较小的卡未画出。",
    "step {step}": "第 {step} 步",
    "step {step}, attempt {attempt}": "第 {attempt} 次启动第 {step} 步",
    "expected {value}": "预期 {value}",
    "{tokens} tokens": "{tokens} 个 token",
    "not printed": "未打印",
    "arrow keys move from step to step": "用方向键逐步移动",
    "Made by verlwatch {version}.": "由 verlwatch {version} 生成。",
}

"""Chinese words for what a hub says of its agents.  Their rule `blind` is also one of runs, see `_zh_life`."""
# ruff: noqa: RUF001 - full-width punctuation is how Chinese is written

from __future__ import annotations

from verlwatch.shell.notifiers._zh_rule import Words

WORDS = Words(
    rules=("agent_lost",),
    titles=(
        (r"nothing heard of it for (.+)", "已失联 {0:n}"),
        (r"cannot read ([0-9]+) of its ([0-9]+) files", "{1} 个文件中有 {0} 个无法读取"),
        (r"heard again", "恢复联系"),
        (r"can read all its files again", "又能读取全部文件"),
        (r"no longer expected", "不再需要"),
        (
            r"The ([0-9]+) files that it reads, of (.+), are not watched until it is back",
            "它读取的 {0} 个文件（{1:v}）在其恢复之前无人监视",
        ),
        (r"What they say of (.+) is not known until it can", "在能读取之前，不知道它们关于 {0:v} 说了什么"),
    ),
    values=((r"no run yet", "尚无训练"),),
    advice=(
        (
            r"see on (\S+) whether the host is up and `systemctl status verlwatch` says active",
            "在 {0} 上看主机是否在线，以及 `systemctl status verlwatch` 是否为 active",
        ),
        (
            r"see whether it reaches the hub: its own status page names the last error",
            "看它能否连上汇总端：它自己的状态页会给出最后的错误",
        ),
        (
            r"see on (\S+), with `verlwatch status`, what keeps it from reading: permissions, disk",
            "在 {0} 上用 `verlwatch status` 看是什么使它无法读取：权限、磁盘",
        ),
    ),
)

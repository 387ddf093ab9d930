"""`fastdisco-bench`: what fastdisco takes, against synthetic clusters, side by side with the programs that people use today.

    arguments → stages → runs, each in a process of its own → cases → report

Imports inside the package are relative: it is called `bench` in a checkout and `fastdisco_bench` where it is installed.
"""

def is_xacro(root, source):
    return False


def expand(r, n, a):
    return n

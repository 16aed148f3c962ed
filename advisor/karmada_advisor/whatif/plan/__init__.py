"""What a change would move before it is made: the scheduler's decisions before and after it, compared."""

"""What a domain contributes to the evaluation of a run: metric collectors and report sections."""
